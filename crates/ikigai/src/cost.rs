//! `ikigai cost`: cost of agents, by agent, model or day.

use std::process::ExitCode;

use anyhow::Result;
use ikigai_core::data::Amounts;
use ikigai_engine::{Cost, CostBy, Engine, Share, figures};
use serde_json::{Value, json};

use crate::arguments::{CostKey, CostOrder};
use crate::context::ProgramContext;
use crate::output::{print, print_json, print_stderr, visible};

pub(crate) fn cost(db: Option<String>, order: &CostOrder) -> Result<ExitCode> {
    let program = ProgramContext::open_reading(db)?;
    let named = match &order.agent {
        Some(name) => program.find(Some(name))?,
        None => None,
    };
    program.block_on(async {
        let engine = &program.engine;
        let mut costs = engine.costs().await?;
        if let Some(agent) = named {
            let family = engine.family_of(agent.id).await?;
            costs.retain(|cost| family.contains(&cost.agent.id));
        }
        match order.by {
            CostKey::Agent => print_agents(&costs, order.json),
            CostKey::Model => print_shares(engine, &costs, CostBy::Model, order.json).await,
            CostKey::Day => print_shares(engine, &costs, CostBy::Day, order.json).await,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn print_agents(costs: &[Cost], as_json: bool) -> Result<()> {
    if costs.is_empty() {
        print_stderr("No agents yet. Try: ikigai run \"hello\"");
    }
    let top = costs.iter().map(|cost| cost.depth).min().unwrap_or(0);
    for cost in costs {
        if as_json {
            let line = json!({
                "agent": cost.agent.id,
                "name": cost.agent.name,
                "parent": cost.agent.parent,
                "own": json_of(&cost.own),
                "family": json_of(&cost.family),
                "descendants": cost.descendants,
            });
            print_json(&line)?;
            continue;
        }
        let name = format!(
            "{}{}",
            "  ".repeat(cost.depth - top),
            visible(&cost.agent.name)
        );
        let own = figures::amounts(&cost.own);
        let family = match cost.descendants {
            0 => String::new(),
            some => format!(
                "  with descendants ({some}): {}",
                figures::amounts(&cost.family)
            ),
        };
        print(&format!("{name:<32} {own}{family}\n"))?;
    }
    Ok(())
}

async fn print_shares(engine: &Engine, costs: &[Cost], by: CostBy, as_json: bool) -> Result<()> {
    let agents: Vec<_> = costs.iter().map(|cost| cost.agent.id).collect();
    let shares = engine.cost_shares(&agents, by).await?;
    let key = match by {
        CostBy::Model => "model",
        CostBy::Day => "day",
    };
    for share in shares {
        let Share {
            name,
            responses,
            amounts,
        } = share;
        if as_json {
            let mut line = json_of(&amounts);
            line[key] = Value::String(name);
            line["responses"] = responses.into();
            print_json(&line)?;
        } else {
            let cost = figures::amounts(&amounts);
            let name = visible(&name);
            print(&format!("{name:<40} {responses:>6} responses · {cost}\n"))?;
        }
    }
    Ok(())
}

fn json_of(amounts: &Amounts) -> Value {
    json!({
        "input": amounts.input,
        "cache_read": amounts.cache_read,
        "cache_write": amounts.cache_write,
        "output": amounts.output,
        "reasoning": amounts.reasoning,
        "cost_nano_usd": amounts.cost_nano_usd,
    })
}
