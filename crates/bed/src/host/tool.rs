//! Helper programs of iproute2.

use std::{
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
};

use crate::BedError;

/// Runs ip(8) and returns what it prints.
///
/// # Errors
/// [`BedError::Unavailable`] without iproute2, [`BedError::Failed`] with ip's own message.
pub fn ip(arguments: &[&str]) -> Result<String, BedError> {
    run("ip", arguments, None)
}

/// Runs a program of iproute2 to its end, with `input` on its standard input, and returns what it prints.
///
/// It has a process group of its own, so that an interrupt from the terminal, which goes to the whole group,
/// does not end it half-way: the bed winds up by itself, and needs these programs for that.
pub(super) fn run(program: &str, arguments: &[&str], input: Option<&str>) -> Result<String, BedError> {
    let mut command = Command::new(program);
    command.args(arguments).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let starting = || format!("running {program}");
    let mut child = match command.spawn() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = format!("the test bed needs {program}(8); on Debian: apt-get install iproute2");
            return Err(BedError::Unavailable(text));
        }
        result => result.map_err(BedError::system(starting()))?,
    };
    let written = match (input, child.stdin.take()) {
        (Some(text), Some(mut pipe)) => pipe.write_all(text.as_bytes()),
        _ => Ok(()),
    };
    let output = child.wait_with_output().map_err(BedError::system(starting()))?;
    if output.status.success() {
        written.map_err(BedError::system(starting()))?;
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    let reason = if said.is_empty() { output.status.to_string() } else { with_line(said, input) };
    Err(BedError::Failed(format!("{program} {}: {reason}", arguments.join(" "))))
}

/// A batch's message names the line that failed only by its number ("Command failed -:7"): adds its text.
fn with_line(said: &str, input: Option<&str>) -> String {
    let number =
        said.rsplit_once("Command failed -:").and_then(|(_, number)| number.trim().parse::<usize>().ok());
    let line = number.and_then(|number| input?.lines().nth(number.checked_sub(1)?));
    let said = said.replace('\n', "; ");
    line.map_or(said.clone(), |line| format!("{said} ({line})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_batch_shows_the_line_it_failed_at() {
        let batch = "link set lo up\nroute add nonsense\n";
        let said = "Error: inet prefix is expected rather than \"nonsense\".\nCommand failed -:2";
        let text = with_line(said, Some(batch));
        assert!(text.ends_with("Command failed -:2 (route add nonsense)"), "{text}");
    }

    #[test]
    fn a_program_that_is_not_installed_is_named_with_its_package() {
        let Err(BedError::Unavailable(text)) = run("no-such-program", &[], None) else { panic!() };
        assert_eq!(text, "the test bed needs no-such-program(8); on Debian: apt-get install iproute2");
    }

    #[test]
    fn a_program_that_fails_is_quoted() {
        let Err(BedError::Failed(text)) = run("sh", &["-c", "echo why >&2; exit 3"], None) else { panic!() };
        assert!(text.ends_with(": why"), "{text}");
    }
}
