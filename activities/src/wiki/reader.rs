//! Reads a document in a process of its own, which ends with it.
//!
//! The process gets the bytes on its standard input, no environment, and limits on time and memory. Whatever happens to it, this
//! process goes on and names the reason.

use super::document::DocumentReading;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use steward_domain::wiki::source_text::{DecodedText, SourceFormat};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// The hidden command that reads a document.
pub const READ_DOCUMENT: &str = "read-document";
/// The most memory of the process: 512 MiB.
pub const MAX_MEMORY: u64 = 512 << 20;
/// How long the process may take.
const MAX_TIME: Duration = Duration::from_secs(30);
/// The most bytes that it may print: many times the longest text that is used.
const MAX_OUTPUT: u64 = 16 << 20;

/// Starts the processes that read documents.
#[derive(Clone, Debug)]
pub struct DocumentReader {
    /// The program, which has the command [`READ_DOCUMENT`].
    program: PathBuf,
    max_time: Duration,
}

impl DocumentReader {
    /// Reads with another program than this one.
    #[must_use]
    pub fn with_program(program: PathBuf) -> Self {
        Self { program, max_time: MAX_TIME }
    }

    /// Reads a document.
    ///
    /// # Errors
    /// Why it has no text, for the person who added it.
    pub async fn read(&self, format: SourceFormat, bytes: Vec<u8>) -> Result<DecodedText, String> {
        let failed = |e: std::io::Error| format!("text_unreadable: its reader could not be started: {e}");
        let mut child = Command::new(&self.program)
            .args([READ_DOCUMENT, &format.to_string()])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let printed = match tokio::time::timeout(self.max_time, talk(&mut child, bytes)).await {
            Ok(printed) => printed,
            Err(_) => Err(format!("text_unreadable: reading it took more than {} s", self.max_time.as_secs())),
        };
        // It may still run, or wait for its output to be read.
        let _ = child.kill().await;
        let reading: DocumentReading = serde_json::from_slice(&printed?).map_err(|_| {
            "text_unreadable: its reader gave up, as a damaged file or one that needs too much memory makes it"
                .to_owned()
        })?;
        reading.into_decoded(format)
    }
}

impl Default for DocumentReader {
    /// Reads with this program, also after its file was replaced by a newer one.
    fn default() -> Self {
        let own = Path::new("/proc/self/exe");
        let program = if own.exists() { own.to_owned() } else { std::env::current_exe().unwrap_or_default() };
        Self::with_program(program)
    }
}

/// Gives the process its bytes, and returns what it prints.
async fn talk(child: &mut Child, bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    // It may end before it has read everything.
    let give = async {
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(&bytes).await;
        }
    };
    let mut printed = Vec::new();
    let take = async {
        match stdout {
            Some(stdout) => stdout.take(MAX_OUTPUT + 1).read_to_end(&mut printed).await.map(drop),
            None => Ok(()),
        }
    };
    let ((), taken) = tokio::join!(give, take);
    taken.map_err(|e| format!("text_unreadable: {e}"))?;
    if printed.len() as u64 > MAX_OUTPUT {
        return Err("too_large: its text is far longer than one of which pages are made: divide it".to_owned());
    }
    Ok(printed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    async fn read_with(script: &str) -> Result<DecodedText, String> {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("reader");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let reader = DocumentReader { program, max_time: Duration::from_secs(2) };
        // Another thread may hold the new file open for an instant, as it starts a process of its own.
        loop {
            match reader.read(SourceFormat::Pdf, vec![b'x'; 1 << 20]).await {
                Err(e) if e.contains("could not be started") && e.contains("busy") => {}
                read => return read,
            }
        }
    }

    #[tokio::test]
    async fn whatever_the_process_does_there_is_an_answer() {
        let good = read_with(r#"cat >/dev/null; printf '{"text":{"text":"The lease.","title":null}}'"#).await.unwrap();
        assert_eq!((good.text.as_str(), good.reader.starts_with("rustium-pdf ")), ("The lease.", true));
        for (script, part) in [
            ("exit 1", "gave up"),
            ("kill -9 $$", "gave up"),
            ("printf nonsense", "gave up"),
            (r#"printf '{"unreadable":"no text"}'"#, "text_unreadable: no text"),
            ("/bin/sleep 60", "more than 2 s"),
            ("while :; do printf 0123456789012345678901234567890123456789; done", "more than 2 s"),
            ("/bin/cat /dev/zero", "too_large"),
        ] {
            let reason = read_with(script).await.unwrap_err();
            let is_expected = reason.contains(part) || (script.contains("while") && reason.contains("too_large"));
            assert!(is_expected, "{script}: {reason}");
        }
        let nothing = DocumentReader::with_program("/nowhere/reader".into());
        assert!(nothing.read(SourceFormat::Pdf, Vec::new()).await.unwrap_err().contains("could not be started"));
    }
}
