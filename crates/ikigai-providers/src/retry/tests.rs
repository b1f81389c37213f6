use super::*;

const NOON: u64 = 1_794_657_600;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn failure(kind: FailureKind) -> ProviderError {
    ProviderError::new(kind, "failed")
}

#[test]
fn every_kind_of_failure_is_tried_again_or_final() {
    let table = [
        (FailureKind::Connection, true),
        (FailureKind::Timeout, true),
        (FailureKind::RateLimited, true),
        (FailureKind::Unavailable, true),
        (FailureKind::CutOff, true),
        (FailureKind::Quota, false),
        (FailureKind::Unauthorized, false),
        (FailureKind::Forbidden, false),
        (FailureKind::NotFound, false),
        (FailureKind::TooLong, false),
        (FailureKind::BadRequest, false),
        (FailureKind::Malformed, false),
    ];

    for (kind, again) in table {
        let pause = decide(&failure(kind), 1, &Policy::DEFAULT, 0);

        assert_eq!(pause.is_some(), again, "{kind:?}");
    }
}

#[test]
fn every_status_has_its_kind() {
    let table = [
        (204, FailureKind::Malformed, false),
        (302, FailureKind::NotFound, false),
        (400, FailureKind::BadRequest, false),
        (401, FailureKind::Unauthorized, false),
        (402, FailureKind::Quota, false),
        (403, FailureKind::Forbidden, false),
        (404, FailureKind::NotFound, false),
        (408, FailureKind::Timeout, true),
        (409, FailureKind::Unavailable, true),
        (413, FailureKind::TooLong, false),
        (422, FailureKind::BadRequest, false),
        (429, FailureKind::RateLimited, true),
        (500, FailureKind::Unavailable, true),
        (501, FailureKind::BadRequest, false),
        (502, FailureKind::Unavailable, true),
        (503, FailureKind::Unavailable, true),
        (504, FailureKind::Unavailable, true),
        (529, FailureKind::Unavailable, true),
    ];

    for (status, kind, again) in table {
        assert_eq!(kind_of_status(status), kind, "{status}");
        assert_eq!(may_help(&failure(kind)), again, "{status}");
    }
}

#[test]
fn pauses_double_up_to_the_longest_and_end_with_the_last_try() {
    let error = failure(FailureKind::Unavailable);
    let policy = Policy {
        tries: 8,
        ..Policy::DEFAULT
    };
    let whole = [500, 1000, 2000, 4000, 8000, 8000, 8000].map(Duration::from_millis);

    for random in [0, 1, 0x5555_5555_5555_5555, u64::MAX] {
        for (attempt, whole) in (1..).zip(whole) {
            let pause = decide(&error, attempt, &policy, random).expect("a further try");

            assert!(
                pause <= whole && pause >= whole * 3 / 4,
                "{attempt} {pause:?}"
            );
        }
        assert_eq!(decide(&error, 8, &policy, random), None);
        assert_eq!(decide(&error, u32::MAX, &policy, random), None);
    }
}

#[test]
fn jitter_spreads_clients_and_tries() {
    let error = failure(FailureKind::Unavailable);
    let pause = |attempt, random| decide(&error, attempt, &Policy::DEFAULT, random);
    let spread: std::collections::HashSet<_> = (0..100).map(|random| pause(1, random)).collect();

    assert!(spread.len() > 90, "{}", spread.len());
    assert_ne!(pause(5, 7).map(|long| long / 16), pause(1, 7));
    assert_eq!(pause(3, 7), pause(3, 7));
}

#[test]
fn what_the_provider_asks_for_wins_up_to_a_limit() {
    let retry_headers = |kind, seconds: f64| {
        let mut error = failure(kind);
        error.retry_after = Some(Duration::from_secs_f64(seconds));
        let pause = decide(&error, 1, &Policy::DEFAULT, 0);
        (pause, excessive_delay(&error, &Policy::DEFAULT))
    };
    let seconds = |seconds| Some(Duration::from_secs_f64(seconds));

    assert_eq!(
        retry_headers(FailureKind::RateLimited, 0.02),
        (seconds(0.02), None)
    );
    assert_eq!(
        retry_headers(FailureKind::RateLimited, 60.0),
        (seconds(60.0), None)
    );
    assert_eq!(
        retry_headers(FailureKind::RateLimited, 60.5),
        (None, seconds(60.5))
    );
    assert_eq!(retry_headers(FailureKind::Quota, 20.0), (None, None));
    assert_eq!(retry_headers(FailureKind::Quota, 3600.0), (None, None));
    let none_at_all = retry_headers(FailureKind::Unavailable, 0.0).0;
    assert!(none_at_all >= seconds(0.375), "{none_at_all:?}");
}

#[test]
fn the_providers_own_word_overrides_the_kind_but_not_the_number_of_tries() {
    let mut error = failure(FailureKind::BadRequest);
    error.should_retry = Some(true);
    assert!(decide(&error, 1, &Policy::DEFAULT, 0).is_some());
    assert!(decide(&error, 6, &Policy::DEFAULT, 0).is_none());

    let mut error = failure(FailureKind::RateLimited);
    error.should_retry = Some(false);
    assert_eq!(decide(&error, 1, &Policy::DEFAULT, 0), None);
}

#[test]
fn headers_are_read_in_every_form() {
    type Headers = &'static [(&'static str, &'static str)];
    let table: &[(Headers, Option<u64>, Option<bool>)] = &[
        (&[], None, None),
        (&[("retry-after-ms", "1500")], Some(1500), None),
        (&[("retry-after-ms", "0.5")], Some(0), None),
        (&[("retry-after", "2")], Some(2000), None),
        (&[("retry-after", " 0.25 ")], Some(250), None),
        (
            &[("retry-after-ms", "20"), ("retry-after", "9")],
            Some(20),
            None,
        ),
        (
            &[("retry-after-ms", "soon"), ("retry-after", "9")],
            Some(9000),
            None,
        ),
        (
            &[("retry-after", "Sat, 14 Nov 2026 12:00:30 GMT")],
            Some(30_000),
            None,
        ),
        (
            &[("retry-after", "Saturday, 14-Nov-26 12:00:30 GMT")],
            Some(30_000),
            None,
        ),
        (
            &[("retry-after", "Sat Nov 14 12:00:30 2026")],
            Some(30_000),
            None,
        ),
        (
            &[
                ("retry-after", "Sat, 14 Nov 2026 13:00:10 GMT"),
                ("date", "Sat, 14 Nov 2026 13:00:00 GMT"),
            ],
            Some(10_000),
            None,
        ),
        (
            &[("retry-after", "Sat, 14 Nov 2026 11:59:59 GMT")],
            None,
            None,
        ),
        (&[("retry-after", "tomorrow")], None, None),
        (
            &[("retry-after", "Sat, 14 Nov 2026 24:00:30 GMT")],
            None,
            None,
        ),
        (
            &[("retry-after", "Sat, 14 Nov 2026 12:00:30 CET")],
            None,
            None,
        ),
        (&[("retry-after", "-1")], None, None),
        (&[("retry-after", "NaN")], None, None),
        (&[("retry-after", "inf")], None, None),
        (&[("retry-after", "1e300")], None, None),
        (&[("retry-after", "")], None, None),
        (&[("x-should-retry", "true")], None, Some(true)),
        (
            &[("x-should-retry", "false"), ("retry-after", "1")],
            Some(1000),
            Some(false),
        ),
        (&[("x-should-retry", "perhaps")], None, None),
    ];

    for (headers, milliseconds, should_retry) in table {
        let header = |name: &str| {
            headers
                .iter()
                .find(|(known, _)| *known == name)
                .map(|h| h.1)
        };

        let retry_headers = retry_headers(header, at(NOON));

        let read = retry_headers.retry_after.map(|pause| pause.as_millis());
        assert_eq!(read, milliseconds.map(u128::from), "{headers:?}");
        assert_eq!(retry_headers.should_retry, *should_retry, "{headers:?}");
    }
}
