//! The model accepts what an undisturbed engine comes to, and refuses what it could not have come to.

mod refused;
mod undisturbed;
