use super::*;
use std::time::Instant;

/// Processor time of this process so far, in seconds. It includes the tests that run beside this one.
fn cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

#[tokio::test]
async fn a_thousand_matters_and_five_thousand_tasks_are_no_burden() {
    let bench = Bench::new().await;
    for m in 0..1_000 {
        bench.matter(&format!("m{m}"));
        for t in 0..5 {
            bench.task(&format!("m{m}-t{t}"), &format!("m{m}"), "");
        }
        for s in 0..4 {
            bench.signal(&format!("m{m}-s{s}"), &format!("task/m{m}-t{s}.md"), "");
        }
    }
    let mut lines = Vec::new();
    let begin = Instant::now();
    let report = bench.sync("01:00:00").await;
    lines.push(format!("first scan of {} files: {:?}", report.read, begin.elapsed()));
    assert_eq!((report.read, report.changed, report.woken.len()), (10_000, 10_000, 1_000));
    let begin = Instant::now();
    assert_eq!(bench.sync("01:01:00").await.read, 0);
    lines.push(format!("scan that finds nothing: {:?}", begin.elapsed()));
    let begin = Instant::now();
    assert_eq!(bench.index.sync_contents(&bench.root, noon("01:02:00")).await.unwrap().changed, 0);
    lines.push(format!("content scan that finds nothing: {:?}", begin.elapsed()));
    bench.task("m7-t3", "m7", "surface_class: high\n");
    let begin = Instant::now();
    assert_eq!(bench.hint(&["task/m7-t3.md"], "01:03:00").await.changed, 1);
    lines.push(format!("one hint: {:?}", begin.elapsed()));
    for (what, clock, look) in [("with 4 signals", "02:00:00", "a"), ("idle", "08:00:00", "b")] {
        let (begin, busy) = (Instant::now(), cpu());
        for m in 0..1_000 {
            let matter = format!("matter/m{m}.md");
            let seen = bench.look(&matter, look, clock).await;
            assert_eq!(seen.signals, if look == "a" { 4 } else { 0 });
            for t in 0..seen.signals {
                bench.checked(&format!("task/m{m}-t{t}.md"), &seen, look).await;
            }
        }
        lines.push(format!("check {what}: {:?} each, {:.2} ms of processor", begin.elapsed() / 1_000, cpu() - busy));
    }
    let begin = Instant::now();
    bench.index.rebuild(&bench.root, noon("09:00:00")).await.unwrap();
    lines.push(format!("rebuild: {:?}", begin.elapsed()));
    let begin = Instant::now();
    bench.index.read().count_records(tonight()).await.unwrap();
    lines.push(format!("counts: {:?}", begin.elapsed()));
    // The times are shown with `--nocapture` and not tested.
    #[allow(clippy::print_stdout, reason = "a measurement, shown with --nocapture")]
    {
        println!("{}", lines.join("\n"));
    }
}
