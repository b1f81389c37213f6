//! Commands on cost: `/cost`, `/budget`.

use std::fmt::Write as _;
use std::time::Duration;

use ikigai_core::Settings;
use ikigai_core::counts::counted;
use ikigai_core::settings::Spend;
use serde_json::{Map, Number, Value};

use super::{
    Command, CommandOption, Completes, Group, Reply, Shows, SlashCommand, Takes, Trouble, Typed,
};
use crate::EngineError;
use crate::budget::used_caps;
use crate::cost::CostBy;
use crate::figures::{
    NANO_USD, amounts, dollars, duration, read_dollars, read_duration, read_tokens, tokens,
};
use crate::turn::CommandContext;

pub(super) const COST: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[model | day]",
        help: "show the cost of this agent and its children, by model or by day",
        examples: &[("/cost day", "cost per day")],
        takes: Takes::Words,
        completes: &[Completes::Words(&["model", "day"])],
        shows: Shows::Overlay,
        ..Command::new("cost", Group::Session)
    },
    handler: |ctx, typed| Box::pin(cost(ctx, typed)),
};

pub(super) const BUDGET: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[amount | off] [--tree | --own] [--agents N] [--time 2h]",
        help: "limit cost, number and time of this agent and its children",
        examples: &[
            ("/budget", "show what is left"),
            ("/budget $5", "stop at $5"),
            ("/budget 200k", "stop at 200k tokens, input and output"),
            (
                "/budget $5 --agents 20 --time 2h",
                "at most 20 agents, two hours",
            ),
            ("/budget $1 --own", "this agent without its children"),
            ("/budget off", "no limit"),
        ],
        takes: Takes::Words,
        options: &[
            CommandOption::Flag("--tree"),
            CommandOption::Flag("--own"),
            CommandOption::Value("--agents"),
            CommandOption::Value("--time"),
        ],
        completes: &[Completes::Words(&["off"])],
        shows: Shows::OverlayWithoutArguments,
        ..Command::new("budget", Group::Session)
    },
    handler: |ctx, typed| Box::pin(budget(ctx, typed)),
};

async fn cost(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let own = ctx.id();
    let by = match typed.one("cost")? {
        None => return Ok(Reply::says(together(ctx).await?)),
        Some("model") => CostBy::Model,
        Some("day") => CostBy::Day,
        Some(other) => {
            return Trouble::refused(format!("usage: /cost [model | day], not `{other}`"));
        }
    };
    let family = ctx.engine().family_of(own).await?;
    let shares = ctx.engine().cost_shares(&family, by).await?;
    let widest = shares.iter().map(|share| share.name.chars().count()).max();
    let lines: Vec<_> = shares
        .iter()
        .map(|share| {
            let width = widest.unwrap_or(0);
            let responses = share.responses;
            let cost = amounts(&share.amounts);
            format!("{:<width$}  {responses:>4} responses · {cost}", share.name)
        })
        .collect();
    if lines.is_empty() {
        return Ok(Reply::says("No requests yet"));
    }
    Ok(Reply::says(lines.join("\n")))
}

async fn together(ctx: &CommandContext<'_>) -> Result<String, EngineError> {
    let own = ctx.id();
    let costs = ctx.engine().costs().await?;
    let Some(cost) = costs.iter().find(|cost| cost.agent.id == own) else {
        return Ok("No requests yet".to_owned());
    };
    let mut text = format!("{}: {}", cost.agent.name, amounts(&cost.own));
    if cost.descendants > 0 {
        let with = counted(cost.descendants, "descendant");
        let _ = write!(text, "\nwith {with}: {}", amounts(&cost.family));
    }
    text.push_str(&caps(ctx).await?);
    Ok(text)
}

/// Returns the lines about the caps of the agent, one each.
async fn caps(ctx: &CommandContext<'_>) -> Result<String, EngineError> {
    let own = ctx.id();
    let mut lines = String::new();
    for used in used_caps(ctx.engine(), ctx.agent()).await? {
        let whose = if used.cap.agent == own {
            "budget".to_owned()
        } else {
            format!("budget of {}", used.cap.name)
        };
        let scope = if used.cap.is_own {
            " (without children)"
        } else {
            ""
        };
        let _ = write!(lines, "\n{whose}{scope}: {}", used.used());
        if used.is_used_up() {
            lines.push_str(" · used up");
        }
    }
    Ok(lines)
}

/// Smallest number without a unit that means tokens; below it, it may be dollars.
const LEAST_TOKENS: f64 = 1000.0;

async fn budget(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let amount = typed.one("budget")?;
    if amount == Some("off") && typed.options.is_empty() {
        let nothing = Map::from_iter([("spend".to_owned(), Value::Null)]);
        return Ok(Reply {
            set: Some(nothing),
            ..Reply::says("Budget removed")
        });
    }
    let is_own = typed.flag("--own");
    if is_own && typed.flag("--tree") {
        return Trouble::refused("--own and --tree exclude each other");
    }
    let mut spend = match amount {
        Some(amount) => amount_of(amount)?,
        None => Spend::default(),
    };
    if let Some(most) = typed.value("--agents") {
        if is_own {
            return Trouble::refused("--agents limits the tree · use it without --own");
        }
        let most = most.parse().ok().filter(|most| *most > 0);
        spend.agents = Some(most.ok_or_else(|| "--agents needs a number, such as 20".to_owned())?);
    }
    if let Some(time) = typed.value("--time") {
        let time = read_duration(time).filter(|time| !time.is_zero());
        let time = time.ok_or_else(|| "--time needs a duration, such as 30m or 2h".to_owned())?;
        spend.seconds = Some(time.as_secs());
        spend.since = Some(ctx.engine().environment().now().0);
    }
    if spend == Spend::default() {
        if is_own || typed.flag("--tree") {
            return Trouble::refused("which budget? /budget $5, /budget 200k or /budget --time 2h");
        }
        let caps = caps(ctx).await?;
        return Ok(Reply::says(match caps.trim_start() {
            "" => "No budget. /budget $5 or /budget 200k to set one",
            caps => caps,
        }));
    }
    spend.own = is_own.then_some(true);
    let output = announce(ctx, &spend).await?;
    let settings = Settings {
        spend: Some(spend),
        ..Settings::default()
    };
    Ok(Reply::sets(&settings, output))
}

/// Returns the output about a new budget, with the amount spent so far.
async fn announce(ctx: &CommandContext<'_>, spend: &Spend) -> Result<String, EngineError> {
    let money = spend.usd.as_ref().map(|usd| format!("${usd}"));
    let money = money.and_then(|typed| read_dollars(&typed)).map(dollars);
    let counted = spend.tokens.map(|most| format!("{} tokens", tokens(most)));
    let agents = spend.agents.map(|most| format!("{most} agents"));
    let time = spend
        .seconds
        .map(|most| duration(Duration::from_secs(most)));
    let limits = [money, counted, agents, time].into_iter().flatten();
    let limits: Vec<_> = limits.collect();
    let is_own = spend.own == Some(true);
    let whose = if is_own {
        "this agent without its children"
    } else {
        "this agent and its children"
    };
    let mut output = format!("Budget of {whose}: {}", limits.join(", "));
    let own = ctx.id();
    let costs = ctx.engine().costs().await?;
    if let Some(cost) = costs.iter().find(|cost| cost.agent.id == own) {
        let so_far = if is_own { &cost.own } else { &cost.family };
        let _ = write!(output, " · so far {}", amounts(so_far));
        if spend.usd.is_some() && so_far.cost_nano_usd.is_none() && so_far.tokens() > 0 {
            output.push_str(" · ⚠ requests of unknown price are refused");
        }
    }
    Ok(output)
}

/// Parses a limit in dollars or tokens.
fn amount_of(amount: &str) -> Result<Spend, Trouble> {
    if amount
        .parse::<f64>()
        .is_ok_and(|number| number < LEAST_TOKENS)
    {
        return Trouble::refused(format!(
            "{amount} of what? /budget ${amount} for dollars, /budget {amount}k for tokens"
        ));
    }
    if read_dollars(amount).is_some_and(|nano| nano > 0) {
        let usd = as_number(amount).ok_or_else(|| format!("`{amount}` is too large"))?;
        return Ok(Spend {
            usd: Some(usd),
            ..Spend::default()
        });
    }
    match read_tokens(amount).filter(|tokens| *tokens > 0) {
        Some(counted) => Ok(Spend {
            tokens: Some(counted),
            ..Spend::default()
        }),
        None => Trouble::refused(format!(
            "invalid budget `{amount}` · use /budget $5, /budget 200k or /budget off"
        )),
    }
}

/// Parses dollars into the stored number.
fn as_number(typed: &str) -> Option<Number> {
    let digits = typed.strip_prefix('$')?;
    // Whole dollars are stored as integers, other amounts as floating point numbers.
    match digits.parse::<u64>() {
        Ok(whole) => (whole <= u64::MAX / NANO_USD).then(|| Number::from(whole)),
        Err(_) => Number::from_f64(digits.parse().ok()?),
    }
}
