//! Summary requests extend the prefix that is in the provider's cache.

use ikigai_core::Kind;
use ikigai_core::data::{self, UsageData};

use ikigai_testkit::tell;

use super::support::{DIALECTS, Wire, is_kind, run, say};

const WINDOW: u64 = 48_000;

/// A summary request reads most of its input from the cache. Its usage row shows that. It repeats
/// the system prompt, the tools and the conversation of the previous request.
#[tokio::test]
async fn a_summary_reads_the_prompt_cache() {
    for (_, dialect) in DIALECTS {
        let mut requests = 0;
        let (wire, sent) = Wire::scripted(dialect, WINDOW, move |_| {
            requests += 1;
            match requests % 2 {
                1 => run(None, &["seq 1 300".to_owned()]),
                _ => say(&"An answer of some words. ".repeat(200)),
            }
        });
        let mut worker = wire.root().await;
        let id = worker.agent().state.agent();
        for turn in 0..40 {
            let text = format!("Question {turn}: {}", "what is it? ".repeat(20));
            crate::support::say(&mut worker, &text).await.unwrap();
        }

        let rows = wire.world.rows(id).await;
        let usages: Vec<UsageData> = rows
            .windows(2)
            .filter(|pair| is_kind(&pair[0], Kind::Usage) && pair[1].content.is_some())
            .filter(|pair| is_kind(&pair[1], Kind::Summary))
            .map(|pair| data::read(pair[0].data.as_deref()))
            .collect();
        assert!(!usages.is_empty(), "{dialect}: no summary");
        for usage in &usages {
            let read = usage.amounts.cache_read.unwrap_or(0);
            let all = usage.amounts.tokens_in();
            tell(&format!(
                "{dialect}: {read} of {all} tokens of a summary's request cached"
            ));
            assert!(read * 100 >= all * 90, "{dialect}: {read} of {all}");
        }
        let sent = sent.all();
        for (index, request) in sent.iter().enumerate().filter(|(_, one)| one.is_summary) {
            let (_, asked) = request.prompt.blocks.split_last().unwrap();
            let before = sent[..index].iter().rfind(|one| !one.is_summary).unwrap();
            assert_eq!(before.prompt.system, request.prompt.system, "{dialect}");
            assert_eq!(before.prompt.tools, request.prompt.tools, "{dialect}");
            assert!(asked.starts_with(&before.prompt.blocks), "{dialect}");
        }
        assert_eq!(wire.mock.faults(), Vec::<String>::new(), "{dialect}");
    }
}
