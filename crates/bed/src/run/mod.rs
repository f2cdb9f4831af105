//! One run of a scenario on the kernel, from plan to run folder.

pub mod validity;
