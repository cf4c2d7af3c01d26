//! Text that knows where it may be broken, and the printer that decides.

/// The line width that is aimed at.
const WIDTH: usize = 100;
const INDENT: &str = "  ";

#[derive(Clone, Debug)]
pub(super) enum Doc {
    Text(String),
    /// A space, or a new line where its group is broken.
    Line,
    /// Nothing, or a new line where its group is broken.
    Soft,
    /// A new line: everything around it is broken.
    Hard,
    /// Only where its group is broken.
    IfBroken(&'static str),
    Indent(Box<Doc>),
    /// On one line if it fits.
    Group(Box<Doc>),
    Concat(Vec<Doc>),
}

impl Doc {
    pub(super) fn empty() -> Doc {
        Doc::Concat(Vec::new())
    }

    /// The first character that is written in any case.
    pub(super) fn first(&self) -> Option<char> {
        match self {
            Doc::Text(text) => text.chars().next(),
            Doc::Line | Doc::Soft | Doc::Hard | Doc::IfBroken(_) => None,
            Doc::Indent(doc) | Doc::Group(doc) => doc.first(),
            Doc::Concat(parts) => parts.iter().find_map(Doc::first),
        }
    }

    pub(super) fn indent(self) -> Doc {
        Doc::Indent(Box::new(self))
    }

    pub(super) fn group(self) -> Doc {
        Doc::Group(Box::new(self))
    }
}

pub(super) fn text(text: impl Into<String>) -> Doc {
    Doc::Text(text.into())
}

pub(super) fn concat(parts: impl IntoIterator<Item = Doc>) -> Doc {
    Doc::Concat(parts.into_iter().collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Flat,
    Broken,
}

/// Lays a document out. Without recursion: what is left to print is a list.
pub(super) fn print(doc: &Doc) -> String {
    let mut out = String::new();
    let mut column = 0;
    let mut work = vec![(0, Mode::Broken, doc)];
    while let Some((depth, mode, doc)) = work.pop() {
        match (doc, mode) {
            (Doc::Text(part), _) => {
                out.push_str(part);
                column = match part.rsplit_once('\n') {
                    Some((_, last)) => last.chars().count(),
                    None => column + part.chars().count(),
                };
            }
            (Doc::Line, Mode::Flat) => {
                out.push(' ');
                column += 1;
            }
            (Doc::Soft | Doc::IfBroken(_), Mode::Flat) => {}
            (Doc::IfBroken(part), Mode::Broken) => {
                out.push_str(part);
                column += part.len();
            }
            (Doc::Line | Doc::Soft, Mode::Broken) | (Doc::Hard, _) => {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                (0..depth).for_each(|_| out.push_str(INDENT));
                column = depth * INDENT.len();
            }
            (Doc::Indent(inner), mode) => work.push((depth + 1, mode, inner)),
            (Doc::Group(inner), _) => {
                let mode = if fits(inner, column, &work) { Mode::Flat } else { Mode::Broken };
                work.push((depth, mode, inner));
            }
            (Doc::Concat(parts), mode) => work.extend(parts.iter().rev().map(|part| (depth, mode, part))),
        }
    }
    // Blank lines have no spaces.
    let lines: Vec<&str> = out.lines().map(|line| if line.trim().is_empty() { "" } else { line }).collect();
    lines.join("\n")
}

/// Whether a group fits on the rest of the line, together with what follows up to the next possible break.
fn fits(doc: &Doc, column: usize, rest: &[(usize, Mode, &Doc)]) -> bool {
    let mut left = WIDTH.saturating_sub(column);
    let mut work = vec![(Mode::Flat, doc)];
    let mut after = rest.iter().rev();
    loop {
        let Some((mode, doc)) = work.pop() else {
            match after.next() {
                Some((_, mode, doc)) => work.push((*mode, doc)),
                None => return true,
            }
            continue;
        };
        match (doc, mode) {
            (Doc::Text(part), _) => {
                let first = part.split('\n').next().unwrap_or_default();
                let width = first.chars().count();
                if width > left {
                    return false;
                }
                if first.len() < part.len() {
                    return true;
                }
                left -= width;
            }
            (Doc::Line, Mode::Flat) => {
                if left == 0 {
                    return false;
                }
                left -= 1;
            }
            (Doc::Soft | Doc::IfBroken(_), Mode::Flat) => {}
            (Doc::IfBroken(part), Mode::Broken) => match left.checked_sub(part.len()) {
                Some(rest) => left = rest,
                None => return false,
            },
            (Doc::Line | Doc::Soft, Mode::Broken) => return true,
            // Inside the group it breaks it; after it, it ends the line.
            (Doc::Hard, mode) => return mode == Mode::Broken,
            (Doc::Indent(inner), mode) => work.push((mode, inner)),
            (Doc::Group(inner), mode) => work.push((mode, inner)),
            (Doc::Concat(parts), mode) => work.extend(parts.iter().rev().map(|part| (mode, part))),
        }
    }
}
