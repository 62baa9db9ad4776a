//! Stages of NICs that run TCP: where the time of each went, and which one is the limit.

use nicforge_record::{PointRecord, Record, StageFigures};

/// A stage that has less than this share of its time to spare is at its limit.
const AT_LIMIT: f64 = 0.9;

/// A table for each point that has stages, and a line that says which stage is the limit.
pub fn stages(record: &Record) -> String {
    record.points.iter().filter(|point| !point.stages.is_empty()).map(of_point).collect()
}

fn of_point(point: &PointRecord) -> String {
    let values: String = point.params.iter().map(|(key, value)| format!(" {key}={value}")).collect();
    let mut text = format!("\n{}{values}\n", point.variant);
    let heads = ["FPCs", "M/s", "compute", "memory", "core", "blocked", "queued", "busy %", "threads %"];
    text += &format!("  {:<14}{}\n", "stage", heads.map(|head| format!("{head:>10}")).concat());
    text += &format!("  {:<14}{:>10}{:>10}{}\n", "", "", "", format!("{:>10}", "ns").repeat(5));
    for stage in point.stages.iter().filter(|stage| stage.items_mps > 0.0) {
        let ns = [stage.compute_ns, stage.memory_ns, stage.core_wait_ns, stage.blocked_ns, stage.queued_ns];
        text += &format!("  {:<14}{:>10}{:>10.2}", stage.stage, stage.cores, stage.items_mps);
        text += &ns.map(|ns| format!("{ns:>10.0}")).concat();
        text += &format!("{:>10.1}{:>10.1}\n", stage.busiest_core * 100.0, stage.threads_busy * 100.0);
    }
    text + &limit(&point.stages)
}

/// Which stage is the limit, if one is.
fn limit(stages: &[StageFigures]) -> String {
    let highest = stages.iter().max_by(|one, other| one.load().total_cmp(&other.load()));
    let Some(stage) = highest else { return String::new() };
    let what = if stage.busiest_core >= stage.threads_busy { "computes" } else { "has all threads in use" };
    let share = stage.load() * 100.0;
    let name = &stage.stage;
    if stage.load() >= AT_LIMIT {
        format!("  the limit is {name}: it {what} {share:.0} % of the time\n")
    } else {
        format!("  no stage is at its limit; the nearest is {name}: it {what} {share:.0} % of the time\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stage_without_time_to_spare_is_named() {
        let stage = |name: &str, busiest_core, threads_busy| StageFigures {
            stage: name.to_string(),
            items_mps: 1.0,
            busiest_core,
            threads_busy,
            ..StageFigures::default()
        };
        let stages = vec![stage("pre", 0.5, 0.6), stage("post", 0.99, 0.7)];
        let point = PointRecord { variant: "tasnic".to_string(), stages, ..PointRecord::default() };
        let record = Record { points: vec![point, PointRecord::default()], ..Record::default() };
        let text = super::stages(&record);
        assert!(text.contains("the limit is post: it computes 99 %"), "{text}");
        assert_eq!(text.matches("tasnic").count(), 1);
    }
}
