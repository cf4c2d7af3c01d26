//! Statements.

use super::{Generator, KEYS, Returns, Scope};

/// Logs what was caught. What is known of an error that the language itself throws is its name; of others all.
fn tell(error: &str) -> String {
    let known = format!("{error}.name === \"Error\" ? [{error}.message, {error}.code, {error}.data] : {error}.name");
    format!("log({error} instanceof Error ? ({known}) : {error})")
}

impl Generator {
    pub(super) fn statement(&mut self) {
        if self.budget == 0 || self.depth > 3 {
            let value = self.number(1);
            return self.line(&format!("log({value})"));
        }
        self.budget -= 1;
        match self.below(38) {
            0..=3 => self.number_variable(),
            4 => {
                let (name, value) = (self.name("s"), self.text(3));
                self.line(&format!("let {name} = {value}"));
                self.scope().texts.push(name);
            }
            5 | 6 => {
                let (name, value) = (self.name("l"), self.list(3));
                self.line(&format!("const {name} = {value}.slice(0, 12)"));
                self.scope().lists.push(name);
            }
            7 | 8 => {
                let (name, value) = (self.name("o"), self.object(3));
                self.line(&format!("const {name} = {{ ...{value} }}"));
                self.scope().objects.push(name);
            }
            9..=12 => self.assignment(),
            13 | 14 => {
                let value = self.any(3);
                self.line(&format!("log({value})"));
            }
            15 | 16 => self.branch(),
            17..=19 => self.one_loop(),
            20 => self.switch(),
            21..=23 => self.try_block(),
            24 | 25 => self.function(),
            26 => self.procedure(),
            27 => self.closures(),
            28 | 29 => self.destructuring(),
            30 | 31 => self.start(),
            32 => self.provoked(),
            33 => self.small(),
            34 => self.shadowed(),
            35 => self.leave(),
            _ => self.jump(),
        }
    }

    fn statements(&mut self, scope: Scope) {
        self.inside(scope, |generator| {
            for _ in 0..1 + generator.below(3) {
                generator.statement();
            }
        });
    }

    fn number_variable(&mut self) {
        let (name, value) = (self.name("n"), self.number(3));
        match self.below(4) {
            0 => {
                let (other, more) = (self.name("n"), self.number(2));
                self.line(&format!("let {name} = {value}, {other} = {more}"));
                self.scope().numbers.push(other);
            }
            1 => {
                self.line(&format!("let {name}"));
                self.line(&format!("{name} = {value};"));
            }
            2 => {
                self.line(&format!("const {name} = {value};"));
                return self.scope().constants.push(name);
            }
            _ => self.line(&format!("let {name} = {value}")),
        }
        self.scope().numbers.push(name);
    }

    pub(super) fn assignment(&mut self) {
        let value = self.number(3);
        match self.below(5) {
            0 => self.assign_property(&value),
            1 => self.assign_element(&value),
            2 => self.assign_text(),
            _ => self.assign_number(&value),
        }
    }

    fn assign_number(&mut self, value: &str) {
        let numbers = self.all(|scope| &scope.numbers);
        let Some(name) = self.pick(&numbers) else { return self.line(&format!("log({value})")) };
        match self.below(5) {
            0 => {
                let sign = self.word(&["+=", "-=", "*=", "/=", "%=", "**=", "??=", "||=", "&&="]);
                let value = if sign == "**=" { "2" } else { value };
                self.line(&format!("{name} {sign} {value}"));
            }
            1 => self.line(&format!("{name}++")),
            2 => self.line(&format!("--{name}")),
            3 => {
                let other = self.pick(&numbers).expect("there is one");
                self.line(&format!(";[{name}, {other}] = [{other}, {value}]"));
            }
            _ => self.line(&format!("{name} = {value}")),
        }
    }

    fn assign_property(&mut self, value: &str) {
        let objects = self.all(|scope| &scope.objects);
        let Some(name) = self.pick(&objects) else { return self.line(&format!("log({value})")) };
        let key = self.word(&KEYS);
        match self.below(7) {
            0 => self.line(&format!("delete {name}.{key}")),
            1 => self.line(&format!("delete {name}[\"{key}\"]")),
            2 => self.line(&format!("{name}.{key} ??= {value}")),
            3 => self.line(&format!("{name}[`{key}`] = {value}")),
            4 => self.line(&format!("if ({name}.{key} !== null && \"{key}\" in {name}) {name}.{key} += {value}")),
            5 => self.line(&format!(";({{ {key}: {name}.{key} = {value} }} = {{ ...{name} }})")),
            _ => self.line(&format!("{name}.{key} = {value}")),
        }
    }

    fn assign_element(&mut self, value: &str) {
        let lists = self.all(|scope| &scope.lists);
        let Some(list) = self.pick(&lists) else { return self.line(&format!("log({value})")) };
        match self.below(6) {
            0 => self.line(&format!("if ({list}.length > 1) {list}[1] = {value}")),
            1 => self.line(&format!("if ({list}.length > 0) {list}[0] -= {value}")),
            2 => self.line(&format!("if ({list}.length > 0) {list}[{list}.length - 1]++")),
            3 => {
                let place = self.place();
                let removed = self.method("list.splice", &list, &[place, "1".to_owned()]);
                self.line(&format!("log({removed})"));
            }
            4 => {
                let value = self.still(2);
                let callback = format!("(v, k) => {{ log(v, k, {value}) }}");
                let call = self.method("list.forEach", &list, &[callback]);
                self.line(&call);
            }
            _ => self.line(&format!("if ({list}.length < 12) {list}.push({value})")),
        }
    }

    fn assign_text(&mut self) {
        let texts = self.all(|scope| &scope.texts);
        let value = self.text(2);
        match self.pick(&texts) {
            Some(name) if self.one_in(2) => self.line(&format!("if ({name}.length < 40) {name} += {value}")),
            Some(name) => self.line(&format!("{name} = {value}.slice(0, 40)")),
            None => self.line(&format!("log({value})")),
        }
    }

    fn branch(&mut self) {
        let test = self.test(2);
        self.line(&format!("if ({test}) {{"));
        self.statements(Scope::default());
        if self.one_in(3) {
            let test = self.any(2);
            self.line(&format!("}} else if ({test}) {{"));
            self.statements(Scope::default());
        }
        if self.one_in(2) {
            self.line("} else {");
            self.statements(Scope::default());
        }
        self.line("}");
    }

    fn one_loop(&mut self) {
        let (name, other) = (self.name("i"), self.name("j"));
        let count = 1 + self.below(3);
        let constant = |name: &String| Scope { constants: vec![name.clone()], ..Scope::default() };
        let (mut end, mut scope) = ("}".to_owned(), constant(&name));
        let head = match self.below(9) {
            0 => format!("for (let {name} = 0; {name} < {count}; {name}++) {{"),
            1 => format!("for (let {name} = 0, {other} = 5; {name} < {other}; {name} += 2, {other}--) {{"),
            2 => {
                self.line(&format!("let {name} = 0"));
                format!("while ({name}++ < {count}) {{")
            }
            3 => {
                self.line(&format!("let {name} = 0"));
                end = format!("}} while (++{name} < {count})");
                "do {".to_owned()
            }
            4 => format!("for (const {name} of {}.slice(0, 3)) {{", self.list(2)),
            5 => {
                scope = Scope { texts: vec![name.clone()], ..Scope::default() };
                format!("for (let {name} of {}.slice(0, 3)) {{", self.text(2))
            }
            6 => {
                scope = constant(&other);
                format!("for (const [{name}, {other}] of Object.entries({})) {{", self.object(2))
            }
            7 => {
                scope = Scope { texts: vec![name.clone()], ..Scope::default() };
                format!("for (let {name} in {}) {{", self.object(2))
            }
            _ => {
                self.line(&format!("let {name} = 0"));
                format!("for ({name} of {}.slice(0, 3)) {{", self.list(2))
            }
        };
        self.line(&head);
        let was = std::mem::replace(&mut self.in_loop, true);
        self.statements(scope);
        self.in_loop = was;
        self.line(&end);
    }

    fn switch(&mut self) {
        let subject = self.number(2);
        self.line(&format!("switch ({subject}) {{"));
        let count = 1 + self.below(3);
        let default = self.below(count + 1);
        for place in 0..=count {
            let head = if place == default { "default:".to_owned() } else { format!("case {}:", self.number(1)) };
            self.depth += 1;
            self.line(&format!("{head} {{"));
            self.statements(Scope::default());
            self.line("}");
            if self.one_in(2) {
                self.line("break");
            }
            self.depth -= 1;
        }
        self.line("}");
    }

    fn try_block(&mut self) {
        self.line("try {");
        self.statements(Scope::default());
        self.depth += 1;
        match self.below(4) {
            0 => self.throw(),
            1 if self.can_await => self.line("await Task.run(\"fail\", { message: \"task\", code: \"t\" })"),
            2 => self.provoke(),
            _ => {}
        }
        self.depth -= 1;
        let kind = self.below(4);
        if kind != 1 {
            let error = self.name("e");
            let head = if self.one_in(6) { "} catch {".to_owned() } else { format!("}} catch ({error}) {{") };
            self.line(&head);
            if head.contains('(') {
                self.depth += 1;
                self.line(&tell(&error));
                self.depth -= 1;
            }
            self.statements(Scope::default());
        }
        if kind == 1 || kind == 2 {
            self.line("} finally {");
            self.statements(Scope::default());
        }
        self.line("}");
    }

    fn throw(&mut self) {
        let (text, value) = (self.text(1), self.any(1));
        match self.below(5) {
            0 => self.line(&format!("throw new Error({text}, {{ code: \"own\", data: {value} }})")),
            1 => self.line(&format!("throw new RangeError({text})")),
            2 => self.line(&format!("throw Error({text})")),
            3 => self.line(&format!("throw {value}")),
            _ => self.line(&format!("throw new Error({text})")),
        }
    }

    /// An error that the language throws.
    fn provoke(&mut self) {
        let name = self.name("q");
        match self.below(8) {
            0 => self.line(&format!("const {name} = null; log({name}.x)")),
            1 => self.line(&format!("const {name} = {{}}; log({name}.x.y)")),
            2 => self.line(&format!("const {name} = {{}}; {name}.x()")),
            3 => self.line(";[].reduce((a, b) => a + b)"),
            4 => self.line("\"x\".repeat(-1)"),
            5 => self.line("JSON.parse(\"{oops\")"),
            6 => self.line(&format!("const {name} = () => late; {name}(); let late = 1")),
            _ => self.line(&format!("const {{ {name} }} = null; log({name})")),
        }
    }

    fn provoked(&mut self) {
        self.line("try {");
        self.depth += 1;
        self.provoke();
        self.depth -= 1;
        let error = self.name("e");
        self.line(&format!("}} catch ({error}) {{ log({error}.name, {error} instanceof Error) }}"));
    }

    fn destructuring(&mut self) {
        let (one, two, rest) = (self.name("n"), self.name("n"), self.name("l"));
        let (value, default) = (self.number(2), self.number(1));
        let (list, object) = (self.list(2), self.object(2));
        let (key, other) = (self.word(&KEYS), self.word(&KEYS));
        match self.below(5) {
            0 => {
                self.line(&format!("let [{one} = {value}, , {two} = {default}, ...{rest}] = {list}"));
                self.scope().lists.push(rest);
            }
            1 => self.line(&format!("let {{ {key}: {one} = {value}, {other}: {two} = {default} }} = {object}")),
            2 => {
                let rest = self.name("o");
                self.line(&format!("let {{ {key}: {one} = {value}, ...{rest} }} = {object}"));
                self.line(&format!("let {two} = Object.keys({rest}).length"));
                self.scope().objects.push(rest);
            }
            3 => self.line(&format!("let {{ x: [{one}, {{ y: {two} = {default} }}] }} = {{ x: [{value}, {{}}] }}")),
            _ => {
                self.line(&format!("let {one} = {value}, {two}"));
                self.line(&format!(";({{ {key}: {two} = {default} }} = {object})"));
            }
        }
        self.scope().numbers.extend([one, two]);
    }

    /// Something that goes on beside the rest.
    fn start(&mut self) {
        if !self.can_await || self.depth > 0 {
            return self.assignment();
        }
        let (name, value) = (self.name("w"), self.promise(2));
        self.line(&format!("const {name} = {value}"));
        self.scope().promises.push(name);
    }

    /// Things that take one line.
    fn small(&mut self) {
        let value = self.any(2);
        match self.below(6) {
            0 => self.line(";"),
            1 => self.line(&format!("{{ {{ log({value}) }} }}")),
            2 => self.line(&format!("/* a comment */ log({value}) // and another")),
            3 => {
                let text = self.native("String", &["new Error(\"m\")".to_owned()]);
                let other = self.method("error.toString", "new TypeError(\"t\")", &[]);
                self.line(&format!("log({text}, {other})"));
            }
            4 => {
                let object = self.object(1);
                let text = self.method("object.toString", &object, &[]);
                self.line(&format!("log({text}, Inputs, typeof function () {{}})"));
            }
            _ => self.line(&format!("log(...[{value}], [...\"ab\"], `a${{1}}${{`b${{2}}`}}`)")),
        }
    }

    /// A block with a variable that hides another one.
    fn shadowed(&mut self) {
        let numbers = self.all(|scope| &scope.numbers);
        let Some(name) = self.pick(&numbers) else { return self.small() };
        self.line("{");
        self.inside(Scope::default(), |generator| {
            generator.line(&format!("let {name} = 42"));
            generator.statement();
            generator.line(&format!("log({name})"));
        });
        self.line("}");
    }

    /// Leaves the function, from wherever.
    fn leave(&mut self) {
        let test = self.test(1);
        let value = match self.returns {
            Returns::Number => self.number(1),
            Returns::Nothing => String::new(),
            Returns::All => self.any(1),
        };
        self.line(&format!("if ({test}) return {value}"));
    }

    fn jump(&mut self) {
        let test = self.test(1);
        if self.in_loop {
            let word = self.word(&["break", "continue"]);
            return self.line(&format!("if ({test}) {word}"));
        }
        let value = self.text(1);
        self.line(&format!("log({value}, {test})"));
    }
}
