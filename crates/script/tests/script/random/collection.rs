//! Lists of numbers, and objects with numbers.

use super::{Generator, KEYS, Scope};

impl Generator {
    pub(super) fn list(&mut self, depth: usize) -> String {
        if depth == 0 || self.one_in(3) {
            return self.plain_list(depth);
        }
        match self.below(16) {
            0..=3 => self.with_callback(depth),
            4 => format!("[...{}, {}]", self.list(depth - 1), self.number(depth - 1)),
            5 => self.sorted(depth),
            6..=10 => self.list_method(depth),
            11 => self.made(depth),
            12 if self.can_await => self.awaited_list(depth),
            13 => {
                let object = self.object(depth - 1);
                self.native("Object.values", &[object])
            }
            14 => {
                let list = self.list(depth - 1);
                let text = self.native("JSON.stringify", &[list]);
                let back = self.native("JSON.parse", &[text]);
                // What JSON cannot hold is null now.
                format!("{back}.map(v => v ?? -9)")
            }
            _ => {
                let (one, other) = (self.list(depth - 1), self.list(depth - 1));
                self.method("list.concat", &one, &[other])
            }
        }
    }

    fn plain_list(&mut self, depth: usize) -> String {
        let lists = self.all(|scope| &scope.lists);
        if let (Some(list), true) = (self.pick(&lists), self.one_in(2)) {
            return list;
        }
        let count = self.below(4);
        let items: Vec<String> = (0..count).map(|_| self.number(depth.saturating_sub(1))).collect();
        format!("[{}]", items.join(", "))
    }

    /// A function of one number, written in place: `(parameters, body)`.
    fn callback(&mut self, depth: usize, body: fn(&mut Generator, usize) -> String) -> String {
        let (item, place) = (self.name("y"), self.name("k"));
        let constants = vec![item.clone(), place.clone()];
        let written =
            self.without_await(Scope { constants, ..Scope::default() }, |generator| body(generator, depth - 1));
        match self.below(3) {
            0 => format!("({item}, {place}) => {written}"),
            1 => format!("({item}, {place}) => {{ return {written} }}"),
            _ => format!("function ({item}, {place}) {{ return {written} }}"),
        }
    }

    fn with_callback(&mut self, depth: usize) -> String {
        let list = self.list(depth - 1);
        let name = self.word(&["list.map", "list.filter", "list.flatMap", "Array.from"]);
        match name {
            "list.map" => {
                let callback = self.callback(depth, Generator::number);
                self.method("list.map", &list, &[callback])
            }
            "list.filter" => {
                let callback = self.callback(depth, Generator::test);
                self.method("list.filter", &list, &[callback])
            }
            "list.flatMap" => {
                let callback = self.callback(depth, |generator, depth| {
                    if generator.one_in(2) { generator.number(depth) } else { generator.plain_list(depth) }
                });
                self.method("list.flatMap", &list, &[callback])
            }
            _ => {
                let callback = self.callback(depth, Generator::number);
                self.native("Array.from", &[list, callback])
            }
        }
    }

    fn sorted(&mut self, depth: usize) -> String {
        // NaN is in no order: what a sort makes of it is up to the engine.
        let list = format!("{}.filter(v => v === v)", self.list(depth - 1));
        let ascending = "(a, b) => a < b ? -1 : a > b ? 1 : 0".to_owned();
        match self.below(4) {
            0 => self.method("list.toSorted", &list, &[ascending]),
            1 => self.method("list.sort", &list, &["(a, b) => b < a ? -1 : b > a ? 1 : 0".to_owned()]),
            // Stable: those that are equal stay in order.
            2 => self.method("list.sort", &list, &["(a, b) => (a > 1) === (b > 1) ? 0 : a > 1 ? 1 : -1".to_owned()]),
            _ => self.method("list.toSorted", &list, &[]),
        }
    }

    fn list_method(&mut self, depth: usize) -> String {
        let list = self.list(depth - 1);
        let (place, end) = (self.place(), self.place());
        let value = self.number(depth - 1);
        match self.below(14) {
            0 => self.method("list.slice", &list, &[place, end]),
            1 => self.method("list.toReversed", &list, &[]),
            2 => format!("[{list}, [{value}]].flat()"),
            3 => {
                let nested = format!("[1, [{list}, [{value}]]]");
                self.method("list.flat", &nested, &["2".to_owned()])
            }
            4 => self.method("list.with", &format!("[1, 2, ...{list}]"), &["-1".to_owned(), value]),
            5 => self.method("list.fill", &format!("[...{list}]"), &[value, place]),
            6 => self.method("list.splice", &format!("[...{list}]"), &[place, "1".to_owned(), value]),
            7 => self.method("list.reverse", &format!("[...{list}]"), &[]),
            8 => {
                self.used.insert("list.keys");
                format!("[...{list}.keys()]")
            }
            9 => {
                self.used.insert("list.values");
                format!("[...{list}.values()]")
            }
            10 => {
                self.used.insert("list.entries");
                format!("[...{list}.entries()].map(([k, v]) => v + k)")
            }
            11 => {
                let text = self.text(depth - 1);
                let letters = self.native("Array.from", &[text]);
                format!("{letters}.map(c => c.length)")
            }
            12 => self.native("Array.of", &[value, place]),
            _ => format!("[{list}, {list}].map(([head = {place}, ...rest]) => head + rest.length)"),
        }
    }

    fn made(&mut self, depth: usize) -> String {
        let place = self.name("k");
        let scope = Scope { constants: vec![place.clone()], ..Scope::default() };
        let body = self.without_await(scope, |generator| generator.number(depth - 1));
        let callback = format!("(_, {place}) => {body}");
        let length = format!("{{ length: {} }}", self.below(4));
        self.native("Array.from", &[length, callback])
    }

    fn awaited_list(&mut self, depth: usize) -> String {
        let count = 1 + self.below(3);
        let items: Vec<String> = (0..count).map(|_| self.promise(depth - 1)).collect();
        let name = self.word(&["Promise.all", "Task.all", "Promise.allSettled", "Task.allSettled"]);
        let items = format!("[{}]", items.join(", "));
        match name {
            "Promise.all" => format!("(await {})", self.native("Promise.all", &[items])),
            "Task.all" => format!("(await {})", self.native("Task.all", &[items])),
            "Promise.allSettled" => {
                let settled = self.native("Promise.allSettled", &[items]);
                format!("(await {settled}).map(r => r.status === \"fulfilled\" ? r.value : -2)")
            }
            _ => {
                let settled = self.native("Task.allSettled", &[items]);
                format!("(await {settled}).map(r => r.status === \"completed\" ? r.result : -2)")
            }
        }
    }

    /// A number made of a list.
    pub(super) fn of_list(&mut self, depth: usize) -> String {
        let list = self.list(depth - 1);
        let (value, place) = (self.number(0), self.place());
        match self.below(16) {
            0 => self.method("list.reduce", &list, &["(a, b) => a + b".to_owned(), value]),
            1 => self.method("list.reduceRight", &list, &["(a, b) => a - b".to_owned(), value]),
            2 => format!("({list}[{}] ?? -1)", self.below(3)),
            3 => format!("({} ?? -1)", self.method("list.at", &list, &[place])),
            4 => self.method("list.indexOf", &list, &[value, place]),
            5 => self.method("list.lastIndexOf", &list, &[value]),
            6 => {
                let callback = self.callback(depth, Generator::test);
                format!("({} ?? -1)", self.method("list.find", &list, &[callback]))
            }
            7 => {
                let callback = self.callback(depth, Generator::test);
                self.method("list.findIndex", &list, &[callback])
            }
            8 => {
                let callback = self.callback(depth, Generator::test);
                format!("({} ?? -1)", self.method("list.findLast", &list, &[callback]))
            }
            9 => {
                let callback = self.callback(depth, Generator::test);
                self.method("list.findLastIndex", &list, &[callback])
            }
            10 => format!("({} ?? -1)", self.method("list.pop", &list, &[])),
            11 => format!("({} ?? -1)", self.method("list.shift", &list, &[])),
            12 => self.method("list.push", &format!("{list}.slice(0, 9)"), &[value]),
            13 => self.method("list.unshift", &format!("{list}.slice(0, 9)"), &[value, "1".to_owned()]),
            14 => self.native("Math.max", &[format!("...{list}")]),
            _ => format!("(([p = {value}, ...q]) => p + q.length)({list})"),
        }
    }

    pub(super) fn list_test(&mut self, depth: usize) -> String {
        let list = self.list(depth - 1);
        match self.below(3) {
            0 => {
                let value = self.number(0);
                self.method("list.includes", &list, &[value])
            }
            1 => {
                let callback = self.callback(depth, Generator::test);
                self.method("list.some", &list, &[callback])
            }
            _ => {
                let callback = self.callback(depth, Generator::test);
                self.method("list.every", &list, &[callback])
            }
        }
    }

    pub(super) fn object(&mut self, depth: usize) -> String {
        let objects = self.all(|scope| &scope.objects);
        if let (Some(object), true) = (self.pick(&objects), self.one_in(2)) {
            return object;
        }
        if depth == 0 || self.one_in(2) {
            return self.plain_object(depth);
        }
        let (one, other) = (self.object(depth - 1), self.object(depth - 1));
        match self.below(5) {
            0 => format!("({{ ...{one}, {}: {}, ...{other} }})", self.word(&KEYS), self.number(depth - 1)),
            1 => self.native("Object.assign", &["{}".to_owned(), one, "null".to_owned(), other]),
            2 => {
                let entries = self.native("Object.entries", &[one]);
                let body = self.word(&["[k, v]", "[k + k, 1]", "[\"a\", v]"]);
                let entries = format!("{entries}.map(([k, v]) => {body})");
                self.native("Object.fromEntries", &[entries])
            }
            3 => format!("(({{ {}, ...rest }}) => rest)({one})", self.word(&KEYS)),
            _ => {
                let text = self.native("JSON.stringify", &[one]);
                let back = self.native("JSON.parse", &[text]);
                // What JSON cannot hold is null now.
                format!("Object.fromEntries(Object.entries({back}).map(([k, v]) => [k, v ?? 0]))")
            }
        }
    }

    fn plain_object(&mut self, depth: usize) -> String {
        let mut parts = Vec::new();
        for _ in 0..self.below(4) {
            let (key, value) = (self.word(&KEYS), self.number(depth.saturating_sub(1)));
            parts.push(match self.below(4) {
                0 => format!("\"{key}\": {value}"),
                1 => format!("[\"{key}\"]: {value}"),
                _ => format!("{key}: {value}"),
            });
        }
        let constants = self.all(|scope| &scope.constants);
        if let (Some(name), true) = (self.pick(&constants), self.one_in(3)) {
            parts.push(name);
        }
        format!("({{ {} }})", parts.join(", "))
    }

    /// A number made of an object.
    pub(super) fn of_object(&mut self, depth: usize) -> String {
        let object = self.object(depth - 1);
        let (key, value) = (self.word(&KEYS), self.number(0));
        match self.below(7) {
            0 => format!("({object}.{key} ?? {value})"),
            1 => format!("({object}[\"{key}\"] ?? {value})"),
            2 => format!("({} ?? {value})", self.optional(depth)),
            3 => format!("{}.length", self.native("Object.keys", &[object])),
            4 => format!("(({{ {key}: p = {value}, ...q }}) => p + Object.keys(q).length)({object})"),
            5 => format!("({{ f(x) {{ return x }}, g: {object} }}).f({value})"),
            _ => format!("({object} && {value})"),
        }
    }

    /// A chain that may be cut short: a number or null.
    pub(super) fn optional(&mut self, depth: usize) -> String {
        let object = self.object(depth.saturating_sub(1));
        let (key, value) = (self.word(&KEYS), self.number(0));
        match self.below(7) {
            0 => format!("{object}?.{key}"),
            1 => format!("null?.{key}.b.c(n => n)"),
            2 => format!("({{ o: {object} }}).o?.[\"{key}\"]"),
            3 => format!("({{}}).x?.y[{value}].z"),
            4 => format!("({{}}).f?.({value})"),
            5 => format!("({{ f: x => x }})?.f?.({value})"),
            _ => format!("[{object}][1]?.{key}"),
        }
    }
}
