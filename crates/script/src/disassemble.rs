//! Code as people read it.

use std::fmt::Write as _;

use crate::builtins;
use crate::code::{Code, Function, Op};
use crate::script::Script;

impl Script {
    /// The instructions of the file's functions, with the source line they come from.
    ///
    /// ```
    /// let script = outlast_script::Script::compile("a.wf", "const a = await Task.run('price')\nreturn a + 1")?;
    /// let shown = script.disassemble();
    /// assert!(shown.starts_with("async function (file): 0 parameters, 1 slots\n    1     0  Text \"price\"\n"), "{shown}");
    /// assert!(shown.contains("    2     4  Load(0)\n          5  AddInt(1)\n          6  Return\n"), "{shown}");
    /// # Ok::<(), outlast_script::Diagnostics>(())
    /// ```
    pub fn disassemble(&self) -> String {
        let code = &self.code;
        let mut out = String::new();
        for function in code.functions.iter().filter(|function| !function.is_hidden) {
            write_function(code, function, &mut out);
        }
        out
    }
}

fn write_function(code: &Code, function: &Function, out: &mut String) {
    let kind = if function.is_async { "async function" } else { "function" };
    let (name, params, slots) = (&function.name, function.params, function.slots);
    // Writing into a text does not fail.
    let _ = writeln!(out, "{kind} {name}: {params} parameters, {slots} slots");
    let mut last_line = 0;
    for (at, op) in function.ops.iter().enumerate() {
        let span = function.spans.get(at).copied().unwrap_or_default();
        let line = code.source.position(span.start).line;
        let shown = if line == last_line { String::new() } else { line.to_string() };
        last_line = line;
        let _ = writeln!(out, "{shown:>5}  {at:>4}  {}", show(code, *op));
    }
    for handler in &function.handlers {
        let _ = writeln!(out, "       from {} to {}: errors go to {}", handler.start, handler.end, handler.target);
    }
    out.push('\n');
}

fn show(code: &Code, op: Op) -> String {
    let text = |place: u32| format!("{:?}", code.texts.get(place as usize).map_or("", |text| &*text.text));
    let native = |id: u16| builtins::native(id).name;
    match op {
        Op::Text(place) => format!("Text {}", text(place)),
        Op::Number(place) => format!("Number {}", code.numbers.get(place as usize).copied().unwrap_or_default()),
        Op::Native(id) => format!("Native {}", native(id)),
        Op::CallNative { native: id, args } => format!("CallNative {} with {args}", native(id)),
        Op::CallNativeList(id) => format!("CallNativeList {}", native(id)),
        Op::FindMethod(name) => format!("FindMethod {}", text(name)),
        Op::CallMethod { name, args } => format!("CallMethod {} with {args}", text(name)),
        Op::CallFound { name, args } => format!("CallFound {} with {args}", text(name)),
        Op::CallFoundList(name) => format!("CallFoundList {}", text(name)),
        Op::Member(name) => format!("Member {}", text(name)),
        Op::SetMember(name) => format!("SetMember {}", text(name)),
        Op::DeleteMember(name) => format!("DeleteMember {}", text(name)),
        Op::Property(name) => format!("Property {}", text(name)),
        Op::Closure(id) => {
            format!("Closure {}", code.functions.get(id as usize).map_or("", |function| &*function.name))
        }
        other => format!("{other:?}"),
    }
}
