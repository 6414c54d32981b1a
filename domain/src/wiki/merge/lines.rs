//! Differences and three-way merges of texts, by lines with their line breaks.
//!
//! The differences are those that git finds, so a merge has the same result as git's (its file `xdiff/xmerge.c`).

use imara_diff::{Algorithm, Diff, InternedInput, sources::lines};
use std::ops::Range;

/// One line of two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffLine<'a> {
    Both(&'a str),
    Before(&'a str),
    After(&'a str),
}

/// Lists the lines of two texts: those that both have, and those of one alone.
#[must_use]
pub fn list_diff_lines<'a>(before: &'a str, after: &'a str) -> Vec<DiffLine<'a>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (lines(before).collect(), lines(after).collect());
    let (mut listed, mut at) = (Vec::with_capacity(old.len()), 0);
    for change in find_changes(before, after) {
        listed.extend(old[at..change.base.start].iter().map(|line| DiffLine::Both(line)));
        listed.extend(old[change.base.clone()].iter().map(|line| DiffLine::Before(line)));
        listed.extend(new[change.side].iter().map(|line| DiffLine::After(line)));
        at = change.base.end;
    }
    listed.extend(old[at..].iter().map(|line| DiffLine::Both(line)));
    listed
}

/// Two changes of a text that overlap, so that a person has to decide.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: both sides changed it")]
pub struct LineConflict {
    /// Where it begins in `theirs`, from 1.
    pub line: usize,
    /// The lines of each side.
    pub ours: String,
    pub theirs: String,
}

/// Merges two versions of a text that both came from `base`.
///
/// # Errors
/// [`LineConflict`] for the first place where their changes overlap.
pub fn merge_lines(base: &str, ours: &str, theirs: &str) -> Result<String, LineConflict> {
    let (our_changes, their_changes) = (find_changes(base, ours), find_changes(base, theirs));
    if our_changes.is_empty() || their_changes.is_empty() {
        return Ok(if our_changes.is_empty() { theirs } else { ours }.to_owned());
    }
    let sides = Sides { base: lines(base).count(), ours: lines(ours).collect(), theirs: lines(theirs).collect() };
    let regions = sides.find_regions(&our_changes, &their_changes);
    let (mut merged, mut at) = (String::with_capacity(ours.len().max(theirs.len())), 0);
    for region in regions {
        merged.extend(sides.ours[at..region.ours.start].iter().copied());
        at = region.ours.end;
        match region.from {
            RegionSource::Ours => merged.extend(sides.ours[region.ours].iter().copied()),
            RegionSource::Theirs => merged.extend(sides.theirs[region.theirs].iter().copied()),
            RegionSource::Both if sides.are_same(&region) => merged.extend(sides.ours[region.ours].iter().copied()),
            RegionSource::Both => {
                return Err(LineConflict {
                    line: region.theirs.start + 1,
                    ours: sides.ours[region.ours].concat(),
                    theirs: sides.theirs[region.theirs].concat(),
                });
            }
        }
    }
    merged.extend(sides.ours[at..].iter().copied());
    Ok(merged)
}

/// A change of a text: lines of the base, and the lines that stand there instead.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LineChange {
    base: Range<usize>,
    side: Range<usize>,
}

/// The changes from a base to one of its versions, in their order.
fn find_changes(base: &str, side: &str) -> Vec<LineChange> {
    let input = InternedInput::new(base, side);
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_no_heuristic(&input);
    let range = |range: Range<u32>| range.start as usize..range.end as usize;
    diff.hunks().map(|hunk| LineChange { base: range(hunk.before), side: range(hunk.after) }).collect()
}

/// Where the lines of a region come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RegionSource {
    Ours,
    Theirs,
    /// Both sides changed it.
    Both,
}

/// Lines of both versions that at least one of them changed.
#[derive(Debug)]
struct Region {
    from: RegionSource,
    ours: Range<usize>,
    theirs: Range<usize>,
}

/// The lines of both versions, and the number of lines of the base.
struct Sides<'a> {
    base: usize,
    ours: Vec<&'a str>,
    theirs: Vec<&'a str>,
}

impl Sides<'_> {
    /// Finds what was changed.
    fn find_regions(&self, ours: &[LineChange], theirs: &[LineChange]) -> Vec<Region> {
        let (mut regions, mut our, mut their) = (Vec::new(), 0, 0);
        loop {
            let (next, other) = (ours.get(our), theirs.get(their));
            match (next, other) {
                (Some(next), other) if other.is_none_or(|other| next.base.end < other.base.start) => {
                    let same = self.move_range(&next.base, other, self.theirs.len());
                    add_region(
                        &mut regions,
                        Region { from: RegionSource::Ours, ours: next.side.clone(), theirs: same },
                    );
                    our += 1;
                }
                (next, Some(other)) if next.is_none_or(|next| other.base.end < next.base.start) => {
                    let same = self.move_range(&other.base, next, self.ours.len());
                    let theirs = other.side.clone();
                    add_region(&mut regions, Region { from: RegionSource::Theirs, ours: same, theirs });
                    their += 1;
                }
                (Some(next), Some(other)) => {
                    let same_text = self.ours[next.side.clone()] == self.theirs[other.side.clone()];
                    if next.base != other.base || !same_text {
                        add_region(&mut regions, join_changes(next, other));
                    }
                    our += usize::from(next.base.end <= other.base.end);
                    their += usize::from(other.base.end <= next.base.end);
                }
                (_, _) => return regions,
            }
        }
    }

    /// The lines of a side for lines of the base that it did not change. `next` is its change that follows.
    fn move_range(&self, lines: &Range<usize>, next: Option<&LineChange>, side: usize) -> Range<usize> {
        let (from, to) = next.map_or((self.base, side), |next| (next.base.start, next.side.start));
        // Nothing is above the first line, if the side removed what the region began with.
        (lines.start + to).saturating_sub(from)..(lines.end + to).saturating_sub(from)
    }

    /// Whether both sides wrote the same. Git does not look closer if one of them wrote nothing.
    fn are_same(&self, region: &Region) -> bool {
        !region.ours.is_empty() && self.ours[region.ours.clone()] == self.theirs[region.theirs.clone()]
    }
}

/// The region of two changes that overlap or touch: on each side all lines from the first line of the base that one of them
/// changed to the last one.
fn join_changes(our: &LineChange, their: &LineChange) -> Region {
    let widen = |change: &LineChange, other: &LineChange| {
        let above = change.base.start.saturating_sub(other.base.start);
        let below = other.base.end.saturating_sub(change.base.end);
        // If this side removed lines above, the region began there already.
        change.side.start.saturating_sub(above)..change.side.end + below
    };
    Region { from: RegionSource::Both, ours: widen(our, their), theirs: widen(their, our) }
}

/// Adds a region, or extends the last one if no unchanged line lies between them.
fn add_region(regions: &mut Vec<Region>, region: Region) {
    match regions.last_mut() {
        Some(last) if region.ours.start <= last.ours.end || region.theirs.start <= last.theirs.end => {
            if last.from != region.from {
                last.from = RegionSource::Both;
            }
            last.ours.end = region.ours.end;
            last.theirs.end = region.theirs.end;
        }
        Some(_) | None => regions.push(region),
    }
}
