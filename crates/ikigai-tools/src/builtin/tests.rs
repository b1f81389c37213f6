use super::*;

#[test]
fn facts_by_name_are_those_of_the_tool() {
    for tool in all(ChildEnvironment::default()) {
        let spec = tool.spec();

        assert_eq!(facts(&spec.name), Some(spec.facts), "{}", spec.name);
    }
}

#[test]
fn a_tool_that_is_not_built_in_has_no_facts() {
    assert_eq!(facts("deploy"), None);
}
