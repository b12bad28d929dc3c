//! Measures `jess rpc` through its real pipes: `measure_rpc PATH/TO/jess` sends small requests without waiting, then one
//! at a time, then long texts, and prints requests a second, and the most memory that the process had.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let jess = std::env::args().nth(1).ok_or("usage: measure_rpc PATH/TO/jess")?;
    let mut child = Command::new(jess).arg("rpc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().expect("piped");
    let mut output = BufReader::with_capacity(1 << 16, child.stdout.take().expect("piped"));
    let request = |n: usize, content: &str| {
        format!(
            "{{\"id\": {n}, \"method\": \"envelope.wrap_tool_result\", \"params\": {{\"content\": \"{content}\", \"tool\": \"Read\"}}}}\n"
        )
    };
    let mut line = String::new();
    let mut read = |line: &mut String| -> std::io::Result<usize> {
        line.clear();
        output.read_line(line)
    };
    // The first request pays for what is set up once.
    input.write_all(request(0, "first").as_bytes())?;
    read(&mut line)?;

    const MANY: usize = 100_000;
    let burst: String =
        (0..MANY).map(|n| request(n, &format!("line {n} of a result with <b>text</b>"))).collect();
    let start = Instant::now();
    let writer = std::thread::spawn(move || input.write_all(burst.as_bytes()).map(|()| input));
    for _ in 0..MANY {
        read(&mut line)?;
    }
    println!("sent without waiting: {:.0} requests/s", MANY as f64 / start.elapsed().as_secs_f64());
    let mut input = writer.join().expect("no panic")?;

    const FEW: usize = 20_000;
    let start = Instant::now();
    for n in 0..FEW {
        input.write_all(request(n, "one at a time").as_bytes())?;
        read(&mut line)?;
    }
    println!("one at a time: {:.0} requests/s", FEW as f64 / start.elapsed().as_secs_f64());

    let long = "The quick brown fox jumps over the lazy dog. ".repeat(500_000 / 45);
    let start = Instant::now();
    for n in 0..200 {
        input.write_all(request(n, &long).as_bytes())?;
        read(&mut line)?;
    }
    println!("texts of 500 kB: {:.0} MB/s", 200.0 * long.len() as f64 / 1e6 / start.elapsed().as_secs_f64());
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    println!("{}", status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or_default());
    drop(input);
    child.wait()?;
    Ok(())
}
