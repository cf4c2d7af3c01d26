//! A script: a file that was read, checked and compiled.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use outlast_core::commit::Snapshot;
use rustc_hash::FxHasher;
use sha2::{Digest, Sha256};

use crate::builtins;
use crate::check::check;
use crate::code::Code;
use crate::compile::{Compiled, compile};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::limits::Limits;
use crate::program::ScriptProgram;
use crate::snapshot::SnapshotError;
use crate::source::Source;
use crate::syntax::parse;
use crate::world::RunInfo;

/// A file that was read, checked and compiled. Cheap to clone.
///
/// ```
/// use outlast_script::Script;
///
/// let script = Script::compile("greet.wf", "return `Hello, ${Inputs.name}!`")?;
/// assert_eq!(script.workflows(), ["greet"]);
/// # Ok::<(), outlast_script::Diagnostics>(())
/// ```
#[derive(Clone, Debug)]
pub struct Script {
    pub(crate) code: Arc<Code>,
    version: Arc<str>,
    warnings: Arc<Diagnostics>,
    children: Arc<BTreeSet<Arc<str>>>,
}

impl Script {
    /// Reads, checks and compiles a file. Its name is shown in messages, and names the workflow if the file declares none.
    pub fn compile(name: &str, text: &str) -> Result<Script, Diagnostics> {
        let source = Source::new(name, text);
        let parsed = parse(text);
        if !parsed.problems.is_empty() {
            return Err(Diagnostics::new(source, parsed.problems));
        }
        let checked = check(&parsed, false);
        if checked.problems.iter().any(Diagnostic::is_error) {
            return Err(Diagnostics::new(source, checked.problems));
        }
        let compiled = compile(&parsed, &checked, builtins::prelude(), false);
        if let Some(span) = compiled.too_large {
            let problem = Diagnostic::error("too_many_variables", span, "this function has too many variables");
            return Err(Diagnostics::new(source, vec![problem.help("split it into several functions")]));
        }
        let version = hash(&[text]);
        let hash = hash(&[&builtins::fingerprint(), &version, &fingerprint(&compiled)]);
        let code = Code {
            functions: compiled.functions,
            texts: compiled.texts,
            numbers: compiled.numbers,
            main: compiled.main,
            workflows: checked.workflows,
            hash,
            source: source.clone(),
        };
        let warnings = Arc::new(Diagnostics::new(source, checked.problems));
        let children = Arc::new(checked.children);
        Ok(Script { code: Arc::new(code), version: version.into(), warnings, children })
    }

    /// The hash of the text: a run stays with the text it began with.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The hash of the text and of the language: a snapshot is only good for the code that made it.
    pub fn definition(&self) -> &str {
        &self.code.hash
    }

    /// The workflows of the file: those it declares, or else one with the file's name.
    pub fn workflows(&self) -> Vec<&str> {
        if !self.code.workflows.is_empty() {
            return self.code.workflows.iter().map(|name| &**name).collect();
        }
        let name = self.code.source.name();
        let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
        vec![name.strip_suffix(".wf").unwrap_or(name)]
    }

    /// The workflows it starts by names that stand in its text, in whatever version is newest: whoever drives it must know them.
    ///
    /// ```
    /// let script = outlast_script::Script::compile("a.wf", "return await Workflow.run(\"ship\", Inputs)")?;
    /// assert_eq!(script.children().collect::<Vec<_>>(), ["ship"]);
    /// # Ok::<(), outlast_script::Diagnostics>(())
    /// ```
    pub fn children(&self) -> impl Iterator<Item = &str> {
        self.children.iter().map(|name| &**name)
    }

    /// What is probably not meant, and does not keep the script from running.
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// The text it was made from.
    pub fn source(&self) -> &Source {
        &self.code.source
    }

    /// A run of the script that was told nothing yet.
    pub fn program(&self, info: RunInfo, input: Bytes, limits: Limits) -> ScriptProgram {
        ScriptProgram::new(Arc::clone(&self.code), info, input, limits)
    }

    /// A run that goes on from a snapshot. If that cannot be used, the run is to be rebuilt from its journal.
    pub fn restore(&self, info: RunInfo, limits: Limits, snapshot: &Snapshot) -> Result<ScriptProgram, SnapshotError> {
        ScriptProgram::restore(Arc::clone(&self.code), info, limits, snapshot)
    }
}

/// Finds out what is wrong with a file, without running anything.
///
/// ```
/// let found = outlast_script::check("shop.wf", "const total = 1\nreturn totl");
/// assert_eq!(found.list()[0].help.as_deref(), Some("did you mean `total`?"));
/// ```
pub fn check_text(name: &str, text: &str) -> Diagnostics {
    match Script::compile(name, text) {
        Ok(script) => (*script.warnings).clone(),
        Err(found) => found,
    }
}

/// What the compiler made of the text: another build may make something else of it. Against accidents, not against anybody.
fn fingerprint(compiled: &Compiled) -> String {
    let mut hasher = FxHasher::default();
    compiled.functions.iter().for_each(|function| function.fingerprint(&mut hasher));
    compiled.texts.iter().for_each(|text| text.text.hash(&mut hasher));
    compiled.numbers.iter().for_each(|number| number.to_bits().hash(&mut hasher));
    format!("{:016x}", hasher.finish())
}

fn hash(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut text = String::new();
    for byte in hasher.finalize() {
        // Writing into a text does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
