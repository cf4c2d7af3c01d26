//! Promises of numbers.

use super::{Generator, Scope};

impl Generator {
    pub(super) fn promise(&mut self, depth: usize) -> String {
        let functions = self.functions(true);
        let value = self.number(depth.saturating_sub(1));
        if depth == 0 {
            return self.work(value);
        }
        match (self.below(12), self.pick(&functions)) {
            (0..=3, Some(function)) => format!("{function}({value})"),
            (4, _) => self.native("Promise.resolve", &[value]),
            (5, _) => self.then(depth),
            (6, _) => self.caught(depth),
            (7, _) => self.raced(depth),
            (8, _) => format!("(async () => {value})()"),
            (9, _) => format!("(async p => {{ await {}; return p }})({value})", self.promise(depth - 1)),
            _ => self.work(value),
        }
    }

    /// Something that ends later.
    fn work(&mut self, value: String) -> String {
        // What is not a number on the way becomes null, and null twice is 0.
        let value = format!("(({value}) || 1)");
        match self.below(6) {
            0 => {
                let seconds = self.word(&["0.001", "0.002", "0.003", "1"]).to_owned();
                let delay = self.native("Task.delay", &[seconds]);
                format!("{delay}.then(() => {})", self.still(1))
            }
            1 => {
                let delay = self.native("Timer.delay", &["0.002".to_owned()]);
                format!("{delay}.then(async () => {})", self.still(1))
            }
            2 => format!("Task.run(\"echo\", {{ n: {value} }}).then(({{ n }}) => n ?? 3)"),
            _ => {
                self.used.insert("Task.run");
                format!("Task.run(\"double\", {value} % 1000)")
            }
        }
    }

    fn then(&mut self, depth: usize) -> String {
        let promise = self.promise(depth - 1);
        let name = self.name("v");
        let scope = Scope { constants: vec![name.clone()], ..Scope::default() };
        let body = self.without_await(scope, |generator| generator.number(depth - 1));
        let fulfilled = format!("{name} => {body}");
        if self.one_in(2) {
            self.method("promise.then", &promise, &[fulfilled])
        } else {
            let rejected = format!("() => {}", self.number(0));
            self.method("promise.then", &promise, &[fulfilled, rejected])
        }
    }

    /// Something that fails, and is caught.
    fn caught(&mut self, depth: usize) -> String {
        let value = self.still(depth - 1);
        let failing = match self.below(4) {
            0 => "Task.run(\"fail\", { message: \"late\", code: \"c\" })".to_owned(),
            1 => self.native("Promise.reject", &["new Error(\"now\")".to_owned()]),
            2 => "(async () => { throw new TypeError(\"soon\") })()".to_owned(),
            _ => format!("Task.delay(0.001).then(() => {{ throw {value} }})"),
        };
        let failing = if self.one_in(2) {
            self.method("promise.finally", &failing, &["() => { log(\"finally\") }".to_owned()])
        } else {
            failing
        };
        let handler = format!("e => {{ log(e instanceof Error ? e.message : e); return {value} }}");
        self.method("promise.catch", &failing, &[handler])
    }

    fn raced(&mut self, depth: usize) -> String {
        let mut items = vec![self.promise(depth - 1), self.promise(depth - 1)];
        if self.one_in(3) {
            items.push("Promise.reject(new Error(\"lost\"))".to_owned());
        }
        if self.one_in(4) {
            items.push(self.number(0));
        }
        let place = self.below(items.len());
        items.swap(0, place);
        let items = format!("[{}]", items.join(", "));
        match self.below(4) {
            0 => {
                let raced = self.native("Promise.race", &[items]);
                format!("{raced}.catch(() => -1)")
            }
            1 => self.native("Promise.any", &[items]),
            2 => {
                let raced = self.native("Task.race", &[items]);
                format!("{raced}.then(r => r.status === \"completed\" ? r.result : -3)")
            }
            _ => {
                let any = self.native("Task.any", &[items]);
                format!("{any}.then(r => r.result)")
            }
        }
    }
}
