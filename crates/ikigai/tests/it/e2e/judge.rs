//! Assertions of a test about the last screen, the token cache and the requests.

use ikigai_testkit::mock::Mock;
use serde_json::Value;

use super::play::Session;

/// Checks all assertions of a test; the error describes the first failure.
pub(super) fn judge(test: &Value, session: &Session, mock: &Mock) -> Result<(), String> {
    for wanted in entries(&test["assert"]) {
        screen(&wanted?, session)?;
    }
    for wanted in entries(&test["assert_token_cache"]) {
        cache(&wanted?, &session.cache)?;
    }
    let requests = mock.asked();
    for wanted in entries(&test["assert_mock"]) {
        request(
            &wanted?,
            &requests.iter().map(|asked| &asked.body).collect::<Vec<_>>(),
        )?;
    }
    let faults = mock.faults();
    if !faults.is_empty() {
        return Err(format!("requests break rules: {}", faults.join("\n")));
    }
    Ok(())
}

/// One assertion: its name, its value, and the entry that contains it.
struct Wanted<'a> {
    name: &'a str,
    value: &'a Value,
    all: &'a Value,
}

impl Wanted<'_> {
    fn text(&self) -> Result<&str, String> {
        let text = self.value.as_str();
        text.ok_or_else(|| format!("`{}` needs a text", self.name))
    }

    fn number(&self) -> Result<u64, String> {
        let number = self.value.as_u64();
        number.ok_or_else(|| format!("`{}` needs a number", self.name))
    }

    fn unknown(&self) -> String {
        format!("there is no assertion `{}`", self.name)
    }
}

fn entries(list: &Value) -> impl Iterator<Item = Result<Wanted<'_>, String>> {
    list.as_array().into_iter().flatten().map(|entry| {
        let fields = entry.as_object().into_iter().flatten();
        let mut named = fields.filter(|(name, _)| name.as_str() != "request");
        let (name, value) = named
            .next()
            .ok_or_else(|| format!("{entry} demands nothing"))?;
        Ok(Wanted {
            name,
            value,
            all: entry,
        })
    })
}

fn screen(wanted: &Wanted<'_>, session: &Session) -> Result<(), String> {
    if wanted.name == "in_order" {
        return in_order(wanted.value, &session.screen);
    }
    let text = wanted.text()?;
    let is_right = match wanted.name {
        "contains" => session.shown().contains(text),
        "not_contains" => !session.shown().contains(text),
        "line_prefix" => session.screen.iter().any(|line| line.starts_with(text)),
        _ => return Err(wanted.unknown()),
    };
    is_right
        .then_some(())
        .ok_or_else(|| format!("the screen: {} `{text}`", wanted.name))
}

/// Checks that rows with these prefixes appear in this order.
fn in_order(prefixes: &Value, screen: &[String]) -> Result<(), String> {
    let mut rows = screen.iter();
    for prefix in prefixes.as_array().into_iter().flatten() {
        let prefix = prefix.as_str().ok_or("`in_order` needs texts")?;
        if !rows.any(|row| row.starts_with(prefix)) {
            return Err(format!("the screen: no `{prefix}` where it should be"));
        }
    }
    Ok(())
}

fn cache(wanted: &Wanted<'_>, cache: &Value) -> Result<(), String> {
    let field = |name: &str| {
        let value = cache[name].as_u64();
        value.ok_or_else(|| format!("the token cache has no `{name}`"))
    };
    let turns: Vec<u64> = cache["turns"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|turn| turn["tokens"].as_u64())
        .collect();
    let is_right = match wanted.name {
        "total_lte" => field("total_tokens")? <= wanted.number()?,
        "total_gte" => field("total_tokens")? >= wanted.number()?,
        "turn_count_lt" => field("turn_count")? < wanted.number()?,
        "turn_count_gte" => field("turn_count")? >= wanted.number()?,
        "context_start_gt" => field("context_start_index")? > wanted.number()?,
        "context_start_lte" => field("context_start_index")? <= wanted.number()?,
        "all_turns_positive" => turns.iter().all(|tokens| *tokens > 0),
        "turns_sum_equals_total" => turns.iter().sum::<u64>() == field("total_tokens")?,
        _ => return Err(wanted.unknown()),
    };
    is_right
        .then_some(())
        .ok_or_else(|| format!("{} {} of {cache}", wanted.name, wanted.value))
}

/// Checks `count` of all requests, or an assertion about one of them.
///
/// `request` is its number from 0, or from the end if negative; the default is the last one.
fn request(wanted: &Wanted<'_>, requests: &[&Value]) -> Result<(), String> {
    if wanted.name == "count" {
        let count = requests.len() as u64;
        let is_right = count == wanted.number()?;
        return is_right
            .then_some(())
            .ok_or_else(|| format!("{count} requests came"));
    }
    let number = wanted.all["request"].as_i64().unwrap_or(-1);
    let index = usize::try_from(number).ok().or_else(|| {
        let back = usize::try_from(number.unsigned_abs()).ok()?;
        requests.len().checked_sub(back)
    });
    let body = index.and_then(|index| requests.get(index));
    let body = body.ok_or_else(|| format!("there is no request {number}"))?;
    let text = wanted.text()?;
    let is_right = match wanted.name {
        "contains" => body.to_string().contains(text),
        "not_contains" => !body.to_string().contains(text),
        _ => return Err(wanted.unknown()),
    };
    is_right
        .then_some(())
        .ok_or_else(|| format!("request {number}: {} `{text}`: {body:#}", wanted.name))
}
