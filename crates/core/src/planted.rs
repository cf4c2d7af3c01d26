//! Bugs planted on purpose, to try the trial: a simulator that does not find them proves nothing.
//!
//! Where one is planted the code says `planted!("name")`. In every build but one that is the literal `false`, so that
//! nothing of it is left. The one is built with the compiler's flag `--cfg outlast_planted`: no feature, so that no
//! dependency can switch it on, and never without debug assertions, so that no release has it. Even there no bug is at work
//! before one is chosen, and then it is the only one.

#[cfg(outlast_planted)]
mod bugs;

#[cfg(outlast_planted)]
pub use bugs::{BUGS, Bug, UnknownBug, is, number, plant};

#[cfg(all(outlast_planted, not(debug_assertions)))]
compile_error!("`outlast_planted` is for trials of the simulator: build with debug assertions, or without that flag");

/// Whether this planted bug is at work: never, in this build.
#[cfg(not(outlast_planted))]
#[doc(hidden)]
#[macro_export]
macro_rules! planted {
    ($name:literal) => {
        false
    };
}

/// Whether this planted bug is at work. A name that is not in the table does not compile.
#[cfg(outlast_planted)]
#[doc(hidden)]
#[macro_export]
macro_rules! planted {
    ($name:literal) => {
        $crate::planted::is(const { $crate::planted::number($name) })
    };
}
