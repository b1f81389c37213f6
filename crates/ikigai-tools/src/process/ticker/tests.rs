use std::sync::Mutex;

use super::*;

#[tokio::test(start_paused = true)]
async fn many_lines_in_a_short_time_are_told_seldom_and_the_last_for_sure() {
    let all = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&all);
    let mut ticker = Ticker::new(Arc::new(move |line: &str| {
        kept.lock().unwrap().push(line.to_owned());
    }));

    for number in 0..1000 {
        ticker.see(|| number.to_string());
    }
    ticker.due().await;
    ticker.report(|| "999".to_owned());

    assert_eq!(*all.lock().unwrap(), ["0", "999"]);
}
