//! Numbers, texts and truth values.

use super::{Generator, KEYS, Scope};

/// Functions of one number whose results are exact, so that Node.js has the same.
const EXACT: [&str; 7] = ["Math.abs", "Math.ceil", "Math.floor", "Math.round", "Math.trunc", "Math.sign", "Math.sqrt"];

/// Functions of one number that every library computes a little differently: rounded before they are compared.
const ROUNDED: [&str; 13] = [
    "Math.cbrt",
    "Math.exp",
    "Math.expm1",
    "Math.log",
    "Math.log2",
    "Math.log10",
    "Math.log1p",
    "Math.sin",
    "Math.cos",
    "Math.tan",
    "Math.asin",
    "Math.acos",
    "Math.atan",
];

const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "2",
    "7",
    "10",
    "0.5",
    "-3",
    "100",
    "1e21",
    "0x1f",
    "1_000",
    "-0",
    "0.1",
    "1e-7",
    "4503599627370497.5",
    "NaN",
];

const CONSTANTS: [&str; 6] =
    ["Math.PI", "Math.SQRT2", "Number.MAX_SAFE_INTEGER", "Number.EPSILON", "Number.MIN_VALUE", "Infinity"];

impl Generator {
    pub(super) fn number(&mut self, depth: usize) -> String {
        if depth == 0 || self.one_in(4) {
            return self.atom();
        }
        match self.below(24) {
            0 | 1 => self.arithmetic(depth),
            2 => self.flat_arithmetic(),
            3 => format!("({} ? {} : {})", self.test(depth - 1), self.number(depth - 1), self.number(depth - 1)),
            4 => format!("{}.length", self.text(depth - 1)),
            5 => format!("{}.length", self.list(depth - 1)),
            6 => self.math(depth),
            7 | 8 => self.of_list(depth),
            9 => self.of_text(depth),
            10 | 11 => self.of_object(depth),
            12 => self.called(depth),
            13..=15 if self.can_await => format!("(await {})", self.promise(depth - 1)),
            16 => self.update(),
            17 => self.assigned(depth),
            18 => self.parsed(depth),
            19 => format!("({} || {})", self.number(depth - 1), self.number(depth - 1)),
            20 => format!("({} && {})", self.number(depth - 1), self.number(depth - 1)),
            21 => format!("({} ?? {})", self.maybe(depth - 1), self.number(depth - 1)),
            22 => format!("({}({}))", self.word(&["-", "+"]), self.number(depth - 1)),
            _ => self.immediate(depth),
        }
    }

    /// A name or a literal.
    fn atom(&mut self) -> String {
        let names = [self.all(|scope| &scope.numbers), self.all(|scope| &scope.constants)].concat();
        let literal = if self.one_in(12) { self.word(&CONSTANTS) } else { self.word(&NUMBERS) }.to_owned();
        if self.one_in(2) { literal } else { self.pick(&names).unwrap_or(literal) }
    }

    /// A number, or null.
    fn maybe(&mut self, depth: usize) -> String {
        match self.below(4) {
            0 => "null".to_owned(),
            1 => self.optional(depth),
            2 => format!("{}[{}]", self.list(depth), self.below(4)),
            _ => self.number(depth),
        }
    }

    fn arithmetic(&mut self, depth: usize) -> String {
        let (left, right) = (self.number(depth - 1), self.number(depth - 1));
        match self.below(7) {
            0 => {
                let power = self.word(&["0", "1", "2", "3", "0.5"]);
                format!("(({left}) ** {power})")
            }
            sign => format!("({left} {} {right})", ["+", "-", "*", "%", "/", "+"][sign - 1]),
        }
    }

    /// Several operators without parentheses: the order is the language's.
    fn flat_arithmetic(&mut self) -> String {
        let mut text = self.plain();
        for _ in 0..2 + self.below(3) {
            let sign = self.word(&["+", "-", "*", "%", "/"]);
            // The right side of a power may have a power itself, and no sign before it.
            let right = if self.one_in(6) { format!("{} ** 2", self.plain()) } else { self.plain() };
            text = format!("{text} {sign} {right}");
        }
        format!("({text})")
    }

    /// A number without a sign.
    fn plain(&mut self) -> String {
        let names = self.all(|scope| &scope.constants);
        let literal = self.word(&["1", "2", "3", "0.5", "10"]).to_owned();
        if self.one_in(2) { literal } else { self.pick(&names).unwrap_or(literal) }
    }

    fn math(&mut self, depth: usize) -> String {
        let (one, other) = (self.number(depth - 1), self.number(depth - 1));
        match self.below(8) {
            0 => self.native("Math.max", &[one, other]),
            1 => self.native("Math.min", &[one, format!("...[{other}]")]),
            2 => self.native("Math.max", &[]),
            3 => {
                let name = ROUNDED[self.below(ROUNDED.len())];
                let value = self.native(name, &[one]);
                format!("Number(({value}).toFixed(6))")
            }
            4 => {
                let name = self.word(&["Math.atan2", "Math.pow", "Math.hypot"]);
                let value = match name {
                    "Math.atan2" => self.native("Math.atan2", &[one, other]),
                    "Math.pow" => self.native("Math.pow", &[one, "2".to_owned()]),
                    _ => self.native("Math.hypot", &["3".to_owned(), other]),
                };
                format!("Number(({value}).toFixed(6))")
            }
            _ => {
                let name = EXACT[self.below(EXACT.len())];
                self.native(name, &[one])
            }
        }
    }

    fn of_text(&mut self, depth: usize) -> String {
        let (text, other) = (self.text(depth - 1), self.text(0));
        let place = self.place();
        match self.below(5) {
            0 => self.method("string.indexOf", &text, &[other, place]),
            1 => self.method("string.lastIndexOf", &text, &[other]),
            2 => self.method("string.charCodeAt", &text, &[place]),
            3 => format!("({} ?? 0)", self.method("string.codePointAt", &text, &[place])),
            _ => format!("[...{text}].length"),
        }
    }

    fn called(&mut self, depth: usize) -> String {
        let functions = self.functions(false);
        let value = self.number(depth - 1);
        match self.pick(&functions) {
            Some(function) if self.one_in(6) => format!("{function}(...[{value}])"),
            Some(function) if self.one_in(6) => format!("{function}?.({value})"),
            Some(function) => format!("{function}({value})"),
            None => value,
        }
    }

    /// `n++` and its like, as a value.
    fn update(&mut self) -> String {
        let numbers = self.all(|scope| &scope.numbers);
        match self.pick(&numbers) {
            Some(name) => {
                let sign = self.word(&["++", "--"]);
                if self.one_in(2) { format!("({name}{sign})") } else { format!("({sign}{name})") }
            }
            None => self.atom(),
        }
    }

    /// An assignment, as a value.
    fn assigned(&mut self, depth: usize) -> String {
        let numbers = self.all(|scope| &scope.numbers);
        let value = self.number(depth - 1);
        match self.pick(&numbers) {
            Some(name) => {
                let sign = self.word(&["=", "+=", "-=", "*=", "%=", "/=", "??=", "||=", "&&="]);
                format!("({name} {sign} {value})")
            }
            None => value,
        }
    }

    fn parsed(&mut self, depth: usize) -> String {
        let text = self.text(depth - 1);
        match self.below(7) {
            0 => self.native("Number", &[text]),
            1 => self.native("parseInt", &[text]),
            2 => self.native("Number.parseInt", &[text, "16".to_owned()]),
            3 => self.native("parseFloat", &[text]),
            4 => self.native("Number.parseFloat", &[text]),
            5 => {
                let test = self.test(depth - 1);
                self.native("Number", &[test])
            }
            _ => {
                let value = self.number(depth - 1);
                self.method("number.valueOf", &format!("({value})"), &[])
            }
        }
    }

    /// A function that is called where it is written.
    fn immediate(&mut self, depth: usize) -> String {
        let name = self.name("z");
        let value = self.number(depth - 1);
        let scope = Scope { numbers: vec![name.clone()], ..Scope::default() };
        let body = self.without_await(scope, |generator| generator.number(depth - 1));
        match self.below(3) {
            0 => format!("({name} => {body})({value})"),
            1 => format!("(({name} = 5) => {{ return {body} }})({value})"),
            _ => format!("(function ({name}) {{ return {body} }})({value})"),
        }
    }

    /// A number for which nothing is awaited.
    pub(super) fn still(&mut self, depth: usize) -> String {
        self.without_await(Scope::default(), |generator| generator.number(depth))
    }

    /// Writes something inside of a function that is not asynchronous.
    pub(super) fn without_await(&mut self, scope: Scope, write: impl FnOnce(&mut Generator) -> String) -> String {
        let could_await = std::mem::replace(&mut self.can_await, false);
        self.scopes.push(scope);
        let text = write(self);
        self.scopes.pop();
        self.can_await = could_await;
        text
    }

    /// A place in a text or a list, also from its end or beyond.
    pub(super) fn place(&mut self) -> String {
        self.word(&["0", "1", "2", "-1", "5", "1.5"]).to_owned()
    }

    pub(super) fn text(&mut self, depth: usize) -> String {
        let texts = self.all(|scope| &scope.texts);
        if depth == 0 || self.one_in(4) {
            let literals = ["\"\"", "\"a\"", "'bc'", "`d e`", "\"ünï\"", "\" 12px\"", "\"a\\tb\\u0041\"", "'a,b,a'"];
            let literal = self.word(&literals).to_owned();
            return if self.one_in(2) { literal } else { self.pick(&texts).unwrap_or(literal) };
        }
        match self.below(12) {
            0 => format!("({} + {})", self.text(depth - 1), self.any(depth - 1)),
            1 => format!("({} + {})", self.number(depth - 1), self.text(depth - 1)),
            2 => format!("`<${{{}}}>`", self.any(depth - 1)),
            3 => format!("`${{{}}} and ${{{}}}`", self.text(depth - 1), self.number(depth - 1)),
            4..=6 => self.text_method(depth),
            7 => {
                let list = self.list(depth - 1);
                if self.one_in(3) {
                    self.method("list.toString", &list, &[])
                } else {
                    self.method("list.join", &list, &["\"-\"".to_owned()])
                }
            }
            8 => {
                let value = self.any(depth - 1);
                self.native("String", &[value])
            }
            9 => self.number_text(depth),
            10 => format!("(typeof {})", self.any(depth - 1)),
            _ => format!("({} ? {} : {})", self.test(depth - 1), self.text(depth - 1), self.text(depth - 1)),
        }
    }

    fn text_method(&mut self, depth: usize) -> String {
        let (text, other, more) = (self.text(depth - 1), self.text(0), self.text(0));
        let (place, end) = (self.place(), self.place());
        match self.below(22) {
            0 => self.method("string.toUpperCase", &text, &[]),
            1 => self.method("string.toLowerCase", &text, &[]),
            2 => self.method("string.replaceAll", &text, &[other, more]),
            3 => self.method("string.replace", &text, &[other, more]),
            4 => self.method("string.slice", &text, &[place, end]),
            5 => self.method("string.substring", &text, &[place, end]),
            6 => self.method("string.padStart", &text, &["6".to_owned(), other]),
            7 => self.method("string.padEnd", &text, &["4".to_owned()]),
            8 => self.method("string.trim", &text, &[]),
            9 => self.method("string.trimStart", &text, &[]),
            10 => self.method("string.trimEnd", &text, &[]),
            11 => self.method("string.repeat", &text, &["2".to_owned()]),
            12 => self.method("string.charAt", &text, &[place]),
            13 => format!("({} ?? \"\")", self.method("string.at", &text, &[place])),
            14 => format!("({text}[{}] ?? \"\")", self.below(3)),
            15 => {
                let value = self.number(0);
                self.method("string.concat", &text, &[other, value])
            }
            16 => self.method("string.toString", &text, &[]),
            17 => self.method("string.valueOf", &text, &[]),
            18 => {
                let parts = self.method("string.split", &text, &[other]);
                self.method("list.join", &parts, &["\"|\"".to_owned()])
            }
            19 => self.native("String.fromCharCode", &["72".to_owned(), "105".to_owned()]),
            20 => self.native("String.fromCodePoint", &["252".to_owned()]),
            _ => format!("[log({text}), {other}][1]"),
        }
    }

    fn number_text(&mut self, depth: usize) -> String {
        let value = format!("({})", self.number(depth - 1));
        match self.below(5) {
            0 => {
                let digits = self.below(5).to_string();
                self.method("number.toFixed", &value, &[digits])
            }
            1 => {
                let whole = self.native("Math.round", &[format!("{value} % 1000")]);
                self.method("number.toString", &format!("(({whole}) || 5)"), &["16".to_owned()])
            }
            2 => self.method("number.toString", &value, &[]),
            3 => {
                let value = self.any(depth - 1);
                let indent = self.word(&["2", "\"-\"", "0"]).to_owned();
                self.native("JSON.stringify", &[value, "null".to_owned(), indent])
            }
            _ => {
                let value = self.any(depth - 1);
                self.native("JSON.stringify", &[value])
            }
        }
    }

    pub(super) fn test(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.word(&["true", "false"]).to_owned();
        }
        match self.below(16) {
            0 | 1 => {
                let sign = self.word(&["<", "<=", ">", ">=", "===", "!=="]);
                format!("({} {sign} {})", self.number(depth - 1), self.number(depth - 1))
            }
            2 => {
                let sign = self.word(&["<", "<=", ">", ">=", "===", "!=="]);
                format!("({} {sign} {})", self.text(depth - 1), self.text(depth - 1))
            }
            3 => format!("({} && {})", self.test(depth - 1), self.test(depth - 1)),
            4 => format!("({} || {})", self.test(depth - 1), self.test(depth - 1)),
            5 => format!("(!{})", self.test(depth - 1)),
            6 => format!("(!({}))", self.any(depth - 1)),
            7 => {
                let value = self.any(depth - 1);
                self.native("Boolean", &[value])
            }
            8 => self.flat_test(),
            9 | 10 => self.list_test(depth),
            11 => self.text_test(depth),
            12 => self.number_test(depth),
            13 => self.object_test(depth),
            14 => format!("({} === {})", self.any(depth - 1), self.any(depth - 1)),
            _ => {
                let value = self.any(depth - 1);
                self.native("Array.isArray", &[value])
            }
        }
    }

    fn flat_test(&mut self) -> String {
        let compared = |generator: &mut Generator| {
            let sign = generator.word(&["<", "<=", ">", ">=", "===", "!=="]);
            format!("{} + 1 {sign} {}", generator.plain(), generator.plain())
        };
        let (first, second, third) = (compared(self), compared(self), compared(self));
        let (one, other) = (self.word(&["&&", "||"]), self.word(&["&&", "||"]));
        format!("({first} {one} !({second}) {other} {third})")
    }

    fn text_test(&mut self, depth: usize) -> String {
        let (text, other) = (self.text(depth - 1), self.text(0));
        match self.below(3) {
            0 => self.method("string.includes", &text, &[other]),
            1 => self.method("string.startsWith", &text, &[other]),
            _ => self.method("string.endsWith", &text, &[other]),
        }
    }

    fn number_test(&mut self, depth: usize) -> String {
        let value = self.number(depth - 1);
        match self.below(7) {
            0 => self.native("isNaN", &[value]),
            1 => self.native("isFinite", &[value]),
            2 => self.native("Number.isInteger", &[value]),
            3 => self.native("Number.isSafeInteger", &[value]),
            4 => self.native("Number.isFinite", &[value]),
            5 => self.native("Number.isNaN", &[value]),
            _ => {
                let test = self.test(depth - 1);
                let text = self.method("boolean.toString", &format!("({test})"), &[]);
                format!("({text} === \"true\")")
            }
        }
    }

    fn object_test(&mut self, depth: usize) -> String {
        let object = self.object(depth - 1);
        let key = format!("\"{}\"", self.word(&KEYS));
        match self.below(4) {
            0 => format!("({key} in {object})"),
            1 => self.native("Object.hasOwn", &[object, key]),
            2 => self.method("object.hasOwnProperty", &object, &[key]),
            _ => format!("({} instanceof Error)", self.any(depth - 1)),
        }
    }

    /// A value of any kind that can be printed.
    pub(super) fn any(&mut self, depth: usize) -> String {
        match self.below(7) {
            0 | 1 => self.number(depth),
            2 => self.text(depth),
            3 => self.list(depth),
            4 => self.test(depth),
            5 => "null".to_owned(),
            _ => self.object(depth),
        }
    }
}
