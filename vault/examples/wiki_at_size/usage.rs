//! The time and the memory that this process takes.
//!
//! The processor's time counts all threads, also those that have ended.

use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::time::{Duration, Instant};

/// A moment from which time is counted.
pub(crate) struct Stopwatch {
    wall: Instant,
    cpu: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { wall: Instant::now(), cpu: read_cpu() }
    }

    /// The milliseconds that passed.
    pub(crate) fn wall_ms(&self) -> f64 {
        self.wall.elapsed().as_secs_f64() * 1_000.0
    }

    /// The milliseconds that the processors worked for this process.
    pub(crate) fn cpu_ms(&self) -> f64 {
        (read_cpu() - self.cpu).as_secs_f64() * 1_000.0
    }
}

fn read_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default())
}

/// The most memory that this process held, in MiB. Unlike `ru_maxrss`, it does not count the process that started this one.
pub(crate) fn read_peak() -> Result<f64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1_024.0)
}
