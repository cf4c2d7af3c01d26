//! How much a script may use. Everything has a limit, named with its unit.

/// The limits of one script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions between two facts: a loop that waits for nothing must not keep its thread for ever. Going beyond ends the run.
    pub instructions: u64,
    /// Calls inside calls. Going beyond is an error that can be caught.
    pub call_depth: usize,
    /// Bytes of values that can be reached. Going beyond ends the run.
    pub heap_bytes: usize,
    /// Bytes of new values after which garbage is collected. It changes no outcome, only time and memory.
    pub garbage_bytes: usize,
    /// Bytes in one string. Going beyond is an error that can be caught.
    pub text_bytes: usize,
    /// Elements in one list. Going beyond is an error that can be caught.
    pub list_items: usize,
    /// How deep values may nest that leave the script or come into it. Going beyond is an error that can be caught.
    pub value_depth: usize,
    /// Bytes of a snapshot. A larger one is not taken: the run is rebuilt from its journal instead.
    pub snapshot_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            instructions: 10_000_000,
            call_depth: 128,
            heap_bytes: 64 * 1024 * 1024,
            garbage_bytes: 1024 * 1024,
            text_bytes: 4 * 1024 * 1024,
            list_items: 1_000_000,
            value_depth: 128,
            snapshot_bytes: 8 * 1024 * 1024,
        }
    }
}
