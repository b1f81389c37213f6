//! Commands on cost: `/cost`, `/budget`.

use std::fmt::Write as _;

use ikigai_core::Settings;
use ikigai_core::settings::Spend;
use serde_json::{Map, Number, Value};

use super::{Command, Completes, Group, Reply, Shows, SlashCommand, Takes, Trouble, Typed};
use crate::EngineError;
use crate::cost::{self, CostBy};
use crate::figures::{NANO_USD, amounts, dollars, read_dollars, read_tokens, tokens};
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
        arguments: "[amount | off]",
        help: "limit the cost of this agent and its children, in dollars or tokens",
        examples: &[
            ("/budget", "show what is left"),
            ("/budget $5", "stop at $5"),
            ("/budget 200k", "stop at 200k tokens, input and output"),
            ("/budget off", "no limit"),
        ],
        takes: Takes::Words,
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
        let with = match cost.descendants {
            1 => "with 1 descendant".to_owned(),
            some => format!("with {some} descendants"),
        };
        let _ = write!(text, "\n{with}: {}", amounts(&cost.family));
    }
    text.push_str(&caps(ctx).await?);
    Ok(text)
}

/// Returns the lines about the caps of the agent, one each.
async fn caps(ctx: &CommandContext<'_>) -> Result<String, EngineError> {
    let own = ctx.id();
    let mut lines = String::new();
    for cap in cost::caps(ctx.engine(), ctx.agent()).await? {
        let whose = if cap.agent == own {
            "budget".to_owned()
        } else {
            format!("budget of {}", cap.name)
        };
        let _ = write!(lines, "\n{whose}: {}", cap.used());
        if cap.is_used_up() {
            lines.push_str(" · used up");
        }
    }
    Ok(lines)
}

/// Smallest number without a unit that means tokens; below it, it may be dollars.
const LEAST_TOKENS: f64 = 1000.0;

async fn budget(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let Some(amount) = typed.one("budget")? else {
        let caps = caps(ctx).await?;
        return Ok(Reply::says(match caps.trim_start() {
            "" => "No budget. /budget $5 or /budget 200k to set one",
            caps => caps,
        }));
    };
    if amount == "off" {
        let nothing = Map::from_iter([("spend".to_owned(), Value::Null)]);
        return Ok(Reply {
            set: Some(nothing),
            ..Reply::says("Budget removed")
        });
    }
    if amount
        .parse::<f64>()
        .is_ok_and(|number| number < LEAST_TOKENS)
    {
        return Trouble::refused(format!(
            "{amount} of what? /budget ${amount} for dollars, /budget {amount}k for tokens"
        ));
    }
    let money = read_dollars(amount).filter(|nano| *nano > 0);
    let counted = read_tokens(amount).filter(|tokens| *tokens > 0);
    let (spend, shown) = match (money, counted) {
        (Some(nano), _) => {
            let usd = as_number(amount).ok_or_else(|| format!("`{amount}` is too large"))?;
            let spend = Spend {
                usd: Some(usd),
                tokens: None,
            };
            (spend, dollars(nano))
        }
        (None, Some(counted)) => {
            let spend = Spend {
                usd: None,
                tokens: Some(counted),
            };
            (spend, format!("{} tokens", tokens(counted)))
        }
        (None, None) => {
            return Trouble::refused(format!(
                "invalid budget `{amount}` · use /budget $5, /budget 200k or /budget off"
            ));
        }
    };
    let mut output = format!("Budget of this agent and its children: {shown}");
    let costs = ctx.engine().costs().await?;
    let own = ctx.id();
    if let Some(cost) = costs.iter().find(|cost| cost.agent.id == own) {
        let _ = write!(output, " · so far {}", amounts(&cost.family));
        if spend.usd.is_some() && cost.family.cost_nano_usd.is_none() && cost.family.tokens() > 0 {
            output.push_str(" · ⚠ requests of unknown price do not count");
        }
    }
    let settings = Settings {
        spend: Some(spend),
        ..Settings::default()
    };
    Ok(Reply::sets(&settings, output))
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
