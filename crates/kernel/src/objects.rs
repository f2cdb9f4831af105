//! The BPF objects that the build made.

use crate::KernelError;

/// ELF wants its tables aligned in memory.
#[repr(C, align(8))]
pub(crate) struct Aligned<Bytes: ?Sized>(Bytes);

pub(crate) struct Object {
    name: &'static str,
    elf: &'static Aligned<[u8]>,
}

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// Names of the algorithms this build has BPF objects for, in the registry's order.
///
/// # Errors
/// [`KernelError::NotBuilt`] if the crate was built without clang.
pub fn available() -> Result<Vec<&'static str>, KernelError> {
    match MISSING {
        Some(why) => Err(KernelError::NotBuilt { why }),
        None => Ok(OBJECTS.iter().map(|object| object.name).collect()),
    }
}

/// The BPF object (ELF) of an algorithm of [`available`], as `bpftool struct_ops register` takes it.
///
/// # Errors
/// [`KernelError::NotBuilt`] if the crate was built without clang.
///
/// # Panics
/// If there is no such algorithm, or it does not run in the kernel.
pub fn elf(name: &str) -> Result<&'static [u8], KernelError> {
    available()?;
    let object = OBJECTS.iter().find(|object| object.name == name);
    Ok(&object.expect("the build compiles every algorithm of both hosts").elf.0)
}

/// The object of `bpf/select.bpf.c`.
pub(crate) fn select_elf() -> Result<&'static [u8], KernelError> {
    available()?;
    Ok(&SELECT.expect("it is compiled with the others").0)
}

/// The object of `bpf/timeouts.bpf.c`.
pub(crate) fn timeouts_elf() -> Result<&'static [u8], KernelError> {
    available()?;
    Ok(&TIMEOUTS.expect("it is compiled with the others").0)
}
