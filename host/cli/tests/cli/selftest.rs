//! `opilio selftest`.

use crate::command::Home;

#[test]
fn the_selftest_passes() {
    let home = Home::new();
    let ended = home.run(&["selftest", "--job", "job"]).code(0);
    assert!(ended.out.contains("selftest passed"), "{ended:?}");
    assert!(
        ended.out.contains(" lines of crawl.log verified"),
        "{ended:?}"
    );
    assert!(home.job().join("job.json").exists());
    let again = home.run(&["selftest", "--job", "job"]).code(2);
    assert!(again.err.contains("contains a job"), "{again:?}");
}
