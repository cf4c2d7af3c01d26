//! How much a flow may use. Everything has a limit, named with its unit.

/// Bytes in one file.
pub(crate) const FILE_BYTES_MAX: usize = 1024 * 1024;
/// Nodes in one flow, those in containers included.
pub(crate) const NODES_MAX: usize = 10_000;
/// Containers inside containers.
pub(crate) const NESTING_MAX: usize = 128;
/// Characters in the id of a node.
pub(crate) const ID_CHARS_MAX: usize = 64;
/// How often a loop may go around, at most.
pub(crate) const ITERATIONS_MAX: u32 = 1_000_000;
/// Iterations that may run at once, at most.
pub(crate) const CONCURRENCY_MAX: u32 = 10_000;
/// Levels of lists and objects in an output: more cannot be read as JSON.
pub(crate) const VALUE_DEPTH_MAX: usize = 120;
/// Messages of resumes that are kept: older ones are forgotten.
pub(crate) const MESSAGES_MAX: usize = 100;
/// Problems that are told at once.
pub(crate) const PROBLEMS_MAX: usize = 50;

/// The limits of one run of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// Bytes of one output, input or argument.
    pub payload_bytes: usize,
    /// Bytes of a snapshot. A larger one is not taken: the run is rebuilt from its journal instead.
    pub snapshot_bytes: usize,
    /// What one expression may use.
    pub expression: outlast_script::Limits,
}

impl Default for FlowLimits {
    fn default() -> FlowLimits {
        FlowLimits {
            payload_bytes: 2 * 1024 * 1024,
            snapshot_bytes: 8 * 1024 * 1024,
            expression: outlast_script::EXPRESSION_LIMITS,
        }
    }
}
