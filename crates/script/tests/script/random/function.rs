//! Functions from a number to a number.

use super::{Generator, Returns, Scope};

impl Generator {
    pub(super) fn function(&mut self) {
        let (name, param) = (self.name("f"), self.name("p"));
        let is_async = self.one_in(2);
        let was = (self.can_await, self.in_loop, self.returns);
        (self.can_await, self.in_loop, self.returns) = (is_async, false, Returns::Number);
        match self.below(4) {
            0 => self.recursive(&name, &param, is_async),
            1 => self.arrow(&name, &param, is_async),
            _ => self.declared(&name, &param, is_async),
        }
        (self.can_await, self.in_loop, self.returns) = was;
        self.scope().functions.push((name, is_async));
    }

    fn declared(&mut self, name: &str, param: &str, is_async: bool) {
        let word = if is_async { "async function" } else { "function" };
        let (params, numbers) = self.params(param);
        self.line(&format!("{word} {name}({params}) {{"));
        self.body(numbers);
        self.line("}");
    }

    fn arrow(&mut self, name: &str, param: &str, is_async: bool) {
        let word = if is_async { "async " } else { "" };
        let (params, numbers) = self.params(param);
        match self.below(3) {
            0 => {
                let depth = 1 + self.below(2);
                self.scopes.push(Scope { numbers, ..Scope::default() });
                let value = self.number(depth);
                self.scopes.pop();
                self.line(&format!("const {name} = {word}({params}) => {value}"));
            }
            1 => {
                self.line(&format!("const {name} = {word}({params}) => {{"));
                self.body(numbers);
                self.line("}");
            }
            _ => {
                self.line(&format!("const {name} = {word}function inner({params}) {{"));
                self.body(numbers);
                self.line("}");
            }
        }
    }

    /// Calls itself some times, and then no more.
    fn recursive(&mut self, name: &str, param: &str, is_async: bool) {
        let (word, wait) = if is_async { ("async function", "await ") } else { ("function", "") };
        self.line(&format!("{word} {name}({param}, left = 2) {{"));
        let scope = Scope { constants: vec![param.to_owned(), "left".to_owned()], ..Scope::default() };
        self.inside(scope, |generator| {
            let value = generator.number(1);
            generator.line(&format!("if (left <= 0) return {value}"));
            let value = generator.number(1);
            generator.line(&format!("return ({wait}{name}({value}, left - 1)) + {param}"));
        });
        self.line("}");
    }

    /// Parameters, of which the first is given; and the numbers among them.
    fn params(&mut self, param: &str) -> (String, Vec<String>) {
        let (more, rest) = (self.name("p"), self.name("r"));
        let default = self.number(0);
        match self.below(5) {
            0 => (format!("{param}, {more} = {param}"), vec![param.to_owned(), more]),
            1 => (format!("{param}, ...{rest}"), vec![param.to_owned()]),
            2 => (format!("{param}, {{ a: {more} = 4, ...{rest} }} = {{}}"), vec![param.to_owned(), more]),
            3 => (format!("{param} = 1, [{more} = {default}] = []"), vec![param.to_owned(), more]),
            _ => (param.to_owned(), vec![param.to_owned()]),
        }
    }

    fn body(&mut self, numbers: Vec<String>) {
        self.inside(Scope { numbers, ..Scope::default() }, |generator| {
            for _ in 0..1 + generator.below(3) {
                generator.statement();
            }
            let value = generator.number(2);
            generator.line(&format!("return {value}"));
        });
    }

    /// A function that gives nothing, and is called at once.
    pub(super) fn procedure(&mut self) {
        let name = self.name("g");
        let was = (self.can_await, self.in_loop, self.returns);
        let is_async = self.can_await && self.one_in(2);
        (self.can_await, self.in_loop, self.returns) = (is_async, false, Returns::Nothing);
        let (word, wait) = if is_async { ("async function", "await ") } else { ("function", "") };
        // Before its declaration: functions are there from the beginning of their block.
        self.line(&format!("{wait}{name}()"));
        self.line(&format!("{word} {name}() {{"));
        self.inside(Scope::default(), |generator| {
            for _ in 0..1 + generator.below(2) {
                generator.statement();
            }
        });
        self.line("}");
        (self.can_await, self.in_loop, self.returns) = was;
    }

    /// Closures that share a variable, or each have their own.
    pub(super) fn closures(&mut self) {
        let (list, i) = (self.name("c"), self.name("i"));
        let value = self.number(0);
        match self.below(4) {
            0 => {
                self.line(&format!("const {list} = []"));
                self.line(&format!("for (let {i} = 0; {i} < 3; {i}++) {list}.push(() => {i}++)"));
                self.line(&format!("log({list}.map(f => f() + f()))"));
            }
            1 => {
                self.line(&format!("const {list} = []"));
                self.line(&format!("for (const {i} of [{value}, 2]) {list}.push(() => {i})"));
                self.line(&format!("log({list}.map(f => f()))"));
            }
            2 => {
                self.line(&format!(
                    "const {list} = (() => {{ let {i} = {value}; return {{ up: () => ++{i}, get: () => {i} }} }})()"
                ));
                self.line(&format!("log({list}.up(), {list}.up(), {list}.get())"));
            }
            _ => {
                self.line(&format!("const {list} = []"));
                self.line(&format!("let {i} = 0"));
                self.line(&format!("while ({i} < 2) {{ const own = {i}; {list}.push(() => own + {i}); {i} += 1 }}"));
                self.line(&format!("log({list}.map(f => f()))"));
            }
        }
    }
}
