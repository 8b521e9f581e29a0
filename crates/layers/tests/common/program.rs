//! The test program started again, as one whose second thread sends a datagram and then executes another program.
#![expect(clippy::print_stdout, reason = "the test waits for a line")]
#![expect(clippy::disallowed_methods, reason = "the test is the watched application")]

use std::io::Read;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use suiro_clock::kernel::thread_cpu_ns;

const SENDS: &str = "as-sender";
const WORKS: &str = "as-worker";

/// CPU time that the other program takes before it ends.
pub const WORK_NS: u64 = 200_000_000;

/// Sends to this address and executes the other program, which prints a line, and works when its input ends.
pub fn sends_and_works(to: SocketAddr) -> Command {
    let mut command = this();
    command.args([SENDS, &to.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// What this program does if it was started as one of the two.
pub fn main() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first()?.as_str() {
        SENDS => sends(arguments[1].clone()),
        WORKS => works(),
        _ => return None,
    }
    Some(ExitCode::SUCCESS)
}

fn this() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

fn sends(to: String) {
    let thread = std::thread::spawn(move || {
        let from = UdpSocket::bind("0.0.0.0:0").unwrap();
        from.connect(to).unwrap();
        assert_eq!(from.send(&[7]).unwrap(), 1);
        this().arg(WORKS).exec()
    });
    panic!("no other program: {}", thread.join().unwrap());
}

fn works() {
    println!("up");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    run_for(WORK_NS);
}

/// Uses the CPU for this long.
pub fn run_for(least_ns: u64) {
    let begin_ns = thread_cpu_ns();
    while thread_cpu_ns() - begin_ns < least_ns {}
}
