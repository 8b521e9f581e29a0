//! Tests on real hosts: a test program with a `main` of its own (`harness = false`). It starts itself again in a
//! sandbox and builds its hosts there once, for all of its tests.
//!
//! It accepts test names as `cargo test WORD` passes them, and ends with the same line as cargo's own harness, so that
//! scripts that sum up test results can count these too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use crate::{Privilege, Sandbox};

/// The first argument of the program inside its sandbox.
const INSIDE: &str = "inside";

/// A test and its name.
pub type Test<S> = (&'static str, fn(&S));

/// The tests of one program, and where they run.
#[derive(Debug)]
pub struct Suite<S: 'static> {
    /// The privilege of the sandbox. Without root, tests that need it are skipped.
    pub privilege: Privilege,
    /// Builds what all tests use, inside the sandbox; an error is the reason why all of them are skipped.
    pub fixture: fn() -> Result<S, String>,
    /// Names and tests, in the order in which they run. The first failure ends the run, because the tests share the
    /// fixture.
    pub tests: &'static [Test<S>],
}

impl<S> Suite<S> {
    /// The program's `main`.
    pub fn main(self) -> ExitCode {
        let mut arguments: Vec<String> = std::env::args().skip(1).collect();
        if arguments.first().is_some_and(|argument| argument == INSIDE) {
            arguments.remove(0);
            return self.inside(&arguments);
        }
        if self.privilege == Privilege::Root && Privilege::of_this_process() != Privilege::Root {
            return skipped("these tests need root");
        }
        let arguments = [INSIDE.into()].into_iter().chain(arguments);
        match Sandbox::new(arguments).privilege(self.privilege).spawn() {
            Ok(mut worker) => match worker.wait() {
                Ok(status) if status.success() => ExitCode::SUCCESS,
                _ => ExitCode::FAILURE,
            },
            Err(error) => skipped(&error.to_string()),
        }
    }

    fn inside(&self, arguments: &[String]) -> ExitCode {
        let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
        let is_meant = |name: &str| words.is_empty() || words.iter().any(|&w| name.contains(w));
        let meant: Vec<_> = self.tests.iter().filter(|(name, _)| is_meant(name)).collect();
        if meant.is_empty() {
            return tests_ended(0, 0, self.tests.len(), 0.0);
        }
        let began = now();
        let fixture = match (self.fixture)() {
            Ok(fixture) => fixture,
            Err(reason) => return skipped(&reason),
        };
        let passes = |(name, test): &&&Test<S>| {
            let passed = catch_unwind(AssertUnwindSafe(|| test(&fixture))).is_ok();
            say(&format!("test {name} ... {}", if passed { "ok" } else { "FAILED" }));
            passed
        };
        let passed = meant.iter().take_while(passes).count();
        let failed = usize::from(passed < meant.len());
        let seconds = now().duration_since(began).as_secs_f64();
        tests_ended(passed, failed, self.tests.len() - passed - failed, seconds)
    }
}

fn skipped(reason: &str) -> ExitCode {
    say(&format!("skipped: {reason}"));
    tests_ended(0, 0, 0, 0.0)
}

/// Prints the result of a test program as the harness of `cargo test` does, and returns its exit code.
pub fn tests_ended(passed: usize, failed: usize, left_out: usize, seconds: f64) -> ExitCode {
    let how = if failed == 0 { "ok" } else { "FAILED" };
    say(&format!(
        "\ntest result: {how}. {passed} passed; {failed} failed; 0 ignored; 0 measured; \
         {left_out} filtered out; finished in {seconds:.2}s\n"
    ));
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[expect(clippy::print_stdout, reason = "a test program prints its results")]
fn say(line: &str) {
    println!("{line}");
}

#[expect(clippy::disallowed_methods, reason = "how long tests took is for people")]
fn now() -> Instant {
    Instant::now()
}
