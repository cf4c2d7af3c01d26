//! Colours, where they are wanted.

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};

/// What a piece of text is painted with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    on: bool,
}

impl Palette {
    /// For what is written to standard output.
    pub(crate) fn stdout() -> Palette {
        Palette { on: AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never }
    }

    /// For what is written to standard error.
    pub(crate) fn stderr() -> Palette {
        Palette { on: AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never }
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    pub(crate) fn warn(self, text: &str) -> String {
        self.paint(AnsiColor::Yellow.on_default(), text)
    }

    pub(crate) fn info(self, text: &str) -> String {
        self.paint(AnsiColor::Cyan.on_default(), text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    fn paint(self, style: Style, text: &str) -> String {
        if self.on { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}
