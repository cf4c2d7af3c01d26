//! Random programs, in the part of the language that JavaScript has too. The same seed gives the same program.
//!
//! Values are typed, because JavaScript converts silently and scripts do not; and what may be missing is always given a
//! default, because scripts have no `undefined`. Within that, everything that can be written is written.

mod collection;
mod function;
mod promise;
mod statement;
mod value;

use std::collections::BTreeSet;
use std::fmt::Write as _;

pub(crate) struct Generator {
    state: u64,
    out: String,
    depth: usize,
    names: usize,
    /// Names that can be seen, by what they hold: the innermost block last.
    scopes: Vec<Scope>,
    /// Whether `await` may be written here.
    can_await: bool,
    /// Whether `break` and `continue` may be.
    in_loop: bool,
    /// What `return` gives here.
    returns: Returns,
    budget: usize,
    /// Functions of the language that the program calls: `list.map`, `Math.max`.
    used: BTreeSet<&'static str>,
}

/// What a function returns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Returns {
    Number,
    Nothing,
    /// The whole program: everything there is.
    All,
}

#[derive(Clone, Default)]
struct Scope {
    /// Numbers that may be assigned to.
    numbers: Vec<String>,
    /// Numbers that may not.
    constants: Vec<String>,
    texts: Vec<String>,
    /// Of numbers.
    lists: Vec<String>,
    /// With numbers as properties.
    objects: Vec<String>,
    /// From a number to a number; whether they are asynchronous.
    functions: Vec<(String, bool)>,
    /// Of numbers.
    promises: Vec<String>,
}

/// The properties that objects have, or have not.
const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// A program and the functions of the language that it calls.
pub(crate) struct Random {
    pub(crate) text: String,
    pub(crate) used: BTreeSet<&'static str>,
}

/// The program of a seed.
pub(crate) fn program(seed: u64) -> String {
    generate(seed).text
}

pub(crate) fn generate(seed: u64) -> Random {
    let mut generator = Generator {
        state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03,
        out: String::new(),
        depth: 0,
        names: 0,
        scopes: vec![Scope::default()],
        can_await: true,
        in_loop: false,
        returns: Returns::All,
        budget: 40,
        used: BTreeSet::new(),
    };
    for _ in 0..3 + generator.below(7) {
        generator.statement();
    }
    let result = generator.result();
    generator.line(&format!("return [{result}]"));
    Random { text: generator.out, used: generator.used }
}

impl Generator {
    fn next(&mut self) -> u64 {
        // xorshift64*
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn word<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.below(words.len())]
    }

    fn pick(&mut self, list: &[String]) -> Option<String> {
        if list.is_empty() { None } else { Some(list[self.below(list.len())].clone()) }
    }

    fn all(&self, of: fn(&Scope) -> &Vec<String>) -> Vec<String> {
        self.scopes.iter().flat_map(|scope| of(scope).iter().cloned()).collect()
    }

    fn functions(&self, is_async: bool) -> Vec<String> {
        let functions = self.scopes.iter().flat_map(|scope| &scope.functions);
        functions.filter(|(_, found)| *found == is_async).map(|(name, _)| name.clone()).collect()
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("a scope")
    }

    fn line(&mut self, text: &str) {
        let indent = "  ".repeat(self.depth);
        let _ = writeln!(self.out, "{indent}{text}");
    }

    /// Writes lines one level deeper, in a scope of their own.
    fn inside(&mut self, scope: Scope, write: impl FnOnce(&mut Generator)) {
        self.depth += 1;
        self.scopes.push(scope);
        write(self);
        self.scopes.pop();
        self.depth -= 1;
    }

    /// A call of a function of the language: `Math.max(1, 2)`.
    fn native(&mut self, name: &'static str, args: &[String]) -> String {
        self.used.insert(name);
        format!("{name}({})", args.join(", "))
    }

    /// A call of a method; its name has the receiver's kind before it: `list.map`.
    fn method(&mut self, name: &'static str, receiver: &str, args: &[String]) -> String {
        self.used.insert(name);
        let (_, method) = name.split_once('.').expect("a kind and a name");
        format!("{receiver}.{method}({})", args.join(", "))
    }

    /// Everything that can be seen, for the end of a program.
    fn result(&mut self) -> String {
        let mut parts = self.all(|scope| &scope.numbers);
        parts.extend(self.all(|scope| &scope.texts));
        parts.extend(self.all(|scope| &scope.lists));
        parts.extend(self.all(|scope| &scope.objects));
        parts.extend(self.all(|scope| &scope.promises).into_iter().map(|promise| format!("await {promise}")));
        parts.join(", ")
    }
}
