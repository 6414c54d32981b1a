//! The form of a rehearsal, its random choices, and the line of figures that each of its scenes prints.
//!
//! `STEWARD_FLEET_TEST` is `full` or `short`. A random choice comes from a seed that each line names; `STEWARD_FLEET_SEED`
//! repeats the choices of an earlier run, though not its timing. A figure with a target that it misses fails the scene,
//! after the line is printed.

use crate::run;
use std::fmt::{Display, Write as _};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

const FORM: &str = "STEWARD_FLEET_TEST";
const SEED: &str = "STEWARD_FLEET_SEED";

/// How much of a scene is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For `make test`: as few processes and repetitions as show the point.
    Short,
    /// For `make fleet-test`.
    Full,
}

impl Form {
    /// The form that the environment names; without one the short form.
    ///
    /// # Panics
    /// When it is another word.
    #[must_use]
    pub fn read() -> Self {
        match std::env::var(FORM).as_deref() {
            Ok("full") => Self::Full,
            Ok("short") | Err(_) => Self::Short,
            Ok(other) => panic!("{FORM} is {other}: use full or short"),
        }
    }

    /// Whether the form has a scene that takes too long for the short one. If not, a line says so.
    #[must_use]
    pub fn has_long_scene(self, scene: &str) -> bool {
        if self == Self::Short {
            eprintln!("{scene} is played in full only: make fleet-test");
            note_skipped(scene);
        }
        self == Self::Full
    }

    /// The value for this form.
    #[must_use]
    pub fn choose<T>(self, short: T, full: T) -> T {
        match self {
            Self::Short => short,
            Self::Full => full,
        }
    }
}

/// Names a scene that this run leaves out, for the last lines of `make test`.
fn note_skipped(scene: &str) {
    let file = std::fs::File::options().create(true).append(true).open(run::project().join("target/skipped-scenes"));
    std::io::Write::write_all(&mut file.unwrap(), format!("{scene}\n").as_bytes()).unwrap();
}

/// The seed of this run.
#[must_use]
pub fn seed() -> u64 {
    static SEED_OF_RUN: OnceLock<u64> = OnceLock::new();
    *SEED_OF_RUN.get_or_init(|| match std::env::var(SEED) {
        Ok(set) => set.parse().unwrap_or_else(|_| panic!("{SEED} is {set}: use a number")),
        Err(_) => SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs(),
    })
}

/// Random numbers of one scene: SplitMix64.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The numbers of a scene. They do not depend on the scenes before it.
    #[must_use]
    pub fn new(scene: &str) -> Self {
        let hash = scene.bytes().fold(seed(), |hash, byte| hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte));
        Self(hash)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }

    /// A time from `least` to `most` milliseconds.
    pub fn choose_millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.next() % (most - least + 1))
    }

    /// Takes up to `count` values out of a list, in a random order.
    pub fn take<T>(&mut self, mut from: Vec<T>, count: usize) -> Vec<T> {
        let mut taken = Vec::new();
        while taken.len() < count && !from.is_empty() {
            taken.push(from.swap_remove(self.below(from.len())));
        }
        taken
    }
}

/// The figures of one scene.
#[derive(Debug)]
pub struct Report {
    scene: String,
    begun: Instant,
    figures: String,
    targets: String,
    breaches: Vec<String>,
}

impl Report {
    /// No figures yet. Make it first: it counts the seconds of the scene.
    #[must_use]
    pub fn new(scene: &str) -> Self {
        let (scene, begun) = (scene.to_owned(), Instant::now());
        Self { scene, begun, figures: String::new(), targets: String::new(), breaches: Vec::new() }
    }

    /// A figure without a target.
    pub fn add(&mut self, name: &str, value: impl Display) -> &mut Self {
        write!(self.figures, " {name}={value}").unwrap();
        self
    }

    /// A count that must be this one.
    pub fn must_be(&mut self, name: &str, value: usize, target: usize) -> &mut Self {
        self.check(name, value, &format!("{name}={target}"), value == target)
    }

    /// A count that must not be more.
    pub fn at_most(&mut self, name: &str, value: usize, target: usize) -> &mut Self {
        self.check(name, value, &format!("{name}<={target}"), value <= target)
    }

    /// A count that must not be less, so that a scene in which nothing happened does not pass.
    pub fn at_least(&mut self, name: &str, value: usize, target: usize) -> &mut Self {
        self.check(name, value, &format!("{name}>={target}"), value >= target)
    }

    /// Seconds after which all must go on. They depend on the machine, so the short form only prints a miss.
    pub fn soon(&mut self, name: &str, value: Duration, target: Duration) -> &mut Self {
        if value > target && Form::read() == Form::Short {
            eprintln!("{}: {name} took {:.2} s, target {} s", self.scene, value.as_secs_f64(), target.as_secs());
            return self.add(&format!("{name}_s"), format!("{:.2}", value.as_secs_f64()));
        }
        self.within(name, value, target)
    }

    /// Seconds that must not be more, because something must not happen later.
    pub fn within(&mut self, name: &str, value: Duration, target: Duration) -> &mut Self {
        let (seconds, most) = (format!("{:.2}", value.as_secs_f64()), target.as_secs());
        self.check(&format!("{name}_s"), seconds, &format!("{name}_s<={most}"), value <= target)
    }

    fn check(&mut self, name: &str, value: impl Display, target: &str, holds: bool) -> &mut Self {
        if !holds {
            self.breaches.push(format!("{name}={value}, target {target}"));
        }
        write!(self.targets, " {target}").unwrap();
        self.add(name, value)
    }

    /// Prints the line and fails if a target was missed.
    ///
    /// # Panics
    /// With the missed targets.
    pub fn finish(self) {
        let form = Form::read().choose("short", "full");
        let Self { scene, begun, figures, targets, breaches } = self;
        let (took, seed, commit) = (begun.elapsed().as_secs(), seed(), find_commit());
        eprintln!("{scene}{figures} took_s={took} target{targets} form {form} seed {seed} commit {commit}");
        assert!(breaches.is_empty(), "{scene}: {}", breaches.join("; "));
    }
}

/// The commit of the project, or `unknown`.
fn find_commit() -> String {
    let git = Command::new("git").args(["rev-parse", "--short", "HEAD"]).current_dir(run::project()).output();
    let commit = git.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    if commit.is_empty() { "unknown".to_owned() } else { commit }
}

/// The value below which 99 of 100 lie: of fewer than 100 the largest one.
#[must_use]
pub fn find_p99(mut times: Vec<Duration>) -> Duration {
    times.sort();
    let rank = (times.len() * 99).div_ceil(100);
    times.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}
