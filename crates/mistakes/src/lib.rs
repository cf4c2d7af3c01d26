//! Mistakes in workflows that the compiler finds: see `tests/mistakes`. A package of its own, because its dependencies are compiled
//! once more for it, and it needs few.
