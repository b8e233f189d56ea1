//! Tests of the roles of a node and of the addresses of the controllers.

use std::collections::BTreeMap;

use super::*;

fn quorum(entries: &[(&str, &str)]) -> Result<QuorumConfig, String> {
    let entries: BTreeMap<String, String> = entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    QuorumConfig::from_layers(&Layers(vec![&entries])).map_err(|error| error.to_string())
}

#[test]
fn a_node_is_broker_and_only_controller_unless_told_otherwise() {
    let quorum = quorum(&[]).expect("the defaults");
    assert_eq!(
        quorum.roles,
        ProcessRoles {
            broker: true,
            controller: true
        }
    );
    assert!(quorum.is_quorum_of_one());
    assert_eq!((quorum.voters, quorum.bootstrap_servers), (vec![], vec![]));
}

#[test]
fn voters_and_servers_are_read_with_their_addresses() {
    let quorum = quorum(&[
        ("node.id", "2"),
        ("controller.quorum.voters", "1@a.example:9093,2@[::1]:9094"),
        ("controller.quorum.bootstrap.servers", "a.example:9093"),
    ])
    .expect("a quorum");
    assert!(!quorum.is_quorum_of_one());
    let voters: Vec<_> = quorum
        .voters
        .iter()
        .map(|voter| (voter.id, voter.host.as_str(), voter.port))
        .collect();
    assert_eq!(voters, [(1, "a.example", 9093), (2, "::1", 9094)]);
    assert_eq!(quorum.bootstrap_servers, [("a.example".to_owned(), 9093)]);
}

#[test]
fn a_node_is_a_voter_just_if_it_is_a_controller() {
    let voters = ("controller.quorum.voters", "1@a:1,2@b:1,3@c:1");
    for roles in ["controller", "broker,controller"] {
        assert!(quorum(&[("process.roles", roles), voters]).is_ok());
        let error = quorum(&[("process.roles", roles), voters, ("node.id", "4")]);
        let error = error.expect_err("no voter");
        assert!(error.contains("an entry for node.id=4"), "{error}");
    }
    let broker = ("process.roles", "broker");
    assert!(quorum(&[broker, voters, ("node.id", "4")]).is_ok());
    let error = quorum(&[broker, voters]).expect_err("a voter");
    assert!(error.contains("no entry for node.id=1"), "{error}");
    let error = quorum(&[broker]).expect_err("no controller");
    assert!(
        error.contains("must say where the controllers are"),
        "{error}"
    );
    assert!(quorum(&[broker, ("controller.quorum.bootstrap.servers", "a:1,b:1")]).is_ok());
}

#[test]
fn what_cannot_work_is_refused_with_the_reason() {
    for (voters, part) in [
        ("localhost:9093", "id@host:port"),
        ("1@localhost", "id@host:port"),
        ("1@:9093", "id@host:port"),
        ("-1@localhost:9093", "id@host:port"),
        ("1@localhost:99999", "id@host:port"),
        ("1@::1:9093", "id@host:port"),
        ("1@a:1,1@b:1", "1 is there twice"),
        (
            "1@a:1,2@a:2,3@a:3,4@a:4,5@a:5,6@a:6,7@a:7,8@a:8",
            "at most 7",
        ),
    ] {
        let error = quorum(&[("controller.quorum.voters", voters)]).expect_err(voters);
        assert!(error.contains(part), "{error}");
    }
    let error = quorum(&[("process.roles", "")]).expect_err("no role");
    assert!(error.contains("broker, controller or both"), "{error}");
    assert!(quorum(&[("process.roles", "broker,zookeeper")]).is_err());
    let error = quorum(&[("controller.quorum.bootstrap.servers", "a:1,b:1")]);
    let error = error.expect_err("several without their ids");
    assert!(error.contains("not supported yet"), "{error}");
    assert!(quorum(&[("controller.quorum.bootstrap.servers", "a")]).is_err());
}
