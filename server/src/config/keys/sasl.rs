//! Keys: SASL.

use crate::config::key::{ConfigKey, ConfigType::*};

pub(super) const KEYS: &[ConfigKey] = &[
    ConfigKey::new("sasl.enabled.mechanisms", List, Some("GSSAPI"))
        .per_broker()
        .not_supported_yet()
        .doc("SASL mechanisms offered to clients."),
    ConfigKey::new("sasl.jaas.config", Password, None)
        .per_broker()
        .not_supported_yet()
        .doc("JAAS settings of SASL connections."),
    ConfigKey::new("sasl.mechanism.inter.broker.protocol", Text, Some("GSSAPI"))
        .per_broker()
        .not_supported_yet()
        .doc("SASL mechanism among brokers."),
    ConfigKey::new("sasl.mechanism.controller.protocol", Text, Some("GSSAPI"))
        .not_supported_yet()
        .doc("SASL mechanism towards controllers."),
    ConfigKey::new("sasl.server.callback.handler.class", Class, None)
        .not_supported_yet()
        .doc("Class that answers the server's SASL callbacks."),
    ConfigKey::new("sasl.client.callback.handler.class", Class, None)
        .not_supported_yet()
        .doc("Class that answers the client's SASL callbacks."),
    ConfigKey::new("sasl.login.callback.handler.class", Class, None)
        .not_supported_yet()
        .doc("Class that answers the login's SASL callbacks."),
    ConfigKey::new("sasl.login.class", Class, None)
        .not_supported_yet()
        .doc("Class that logs in."),
    ConfigKey::new("sasl.server.max.receive.size", Int, Some("524288"))
        .not_supported_yet()
        .doc("Largest SASL token."),
    ConfigKey::new("sasl.kerberos.service.name", Text, None)
        .per_broker()
        .not_supported_yet()
        .doc("Kerberos name of the broker's service."),
    ConfigKey::new("sasl.kerberos.kinit.cmd", Text, Some("/usr/bin/kinit"))
        .per_broker()
        .not_supported_yet()
        .doc("Path of kinit."),
    ConfigKey::new("sasl.kerberos.min.time.before.relogin", Long, Some("60000"))
        .per_broker()
        .not_supported_yet()
        .doc("Least time between two Kerberos logins."),
    ConfigKey::new(
        "sasl.kerberos.principal.to.local.rules",
        List,
        Some("DEFAULT"),
    )
    .per_broker()
    .not_supported_yet()
    .doc("Rules that make short names of Kerberos principals."),
    ConfigKey::new("sasl.kerberos.ticket.renew.jitter", Double, Some("0.05"))
        .per_broker()
        .not_supported_yet()
        .doc("Random share of the Kerberos renewal time."),
    ConfigKey::new(
        "sasl.kerberos.ticket.renew.window.factor",
        Double,
        Some("0.8"),
    )
    .per_broker()
    .not_supported_yet()
    .doc("Share of a ticket's life after which it is renewed."),
    ConfigKey::new("sasl.login.connect.timeout.ms", Int, None)
        .not_supported_yet()
        .doc("How long a connection to the login provider may take."),
    ConfigKey::new("sasl.login.read.timeout.ms", Int, None)
        .not_supported_yet()
        .doc("How long the login provider may take to answer."),
    ConfigKey::new("sasl.login.refresh.buffer.seconds", Short, Some("300"))
        .per_broker()
        .not_supported_yet()
        .doc("Least time before expiry at which a login is renewed."),
    ConfigKey::new("sasl.login.refresh.min.period.seconds", Short, Some("60"))
        .per_broker()
        .not_supported_yet()
        .doc("Least time between two renewals of a login."),
    ConfigKey::new("sasl.login.refresh.window.factor", Double, Some("0.8"))
        .per_broker()
        .not_supported_yet()
        .doc("Share of a login's life after which it is renewed."),
    ConfigKey::new("sasl.login.refresh.window.jitter", Double, Some("0.05"))
        .per_broker()
        .not_supported_yet()
        .doc("Random share of the renewal time."),
    ConfigKey::new("sasl.login.retry.backoff.ms", Long, Some("100"))
        .not_supported_yet()
        .doc("First wait before a failed login is tried again."),
    ConfigKey::new("sasl.login.retry.backoff.max.ms", Long, Some("10000"))
        .not_supported_yet()
        .doc("Longest wait before a failed login is tried again."),
    ConfigKey::new(
        "sasl.oauthbearer.allow.unverified.audience",
        Boolean,
        Some("false"),
    )
    .not_supported_yet()
    .doc("Whether tokens for any audience are taken."),
    ConfigKey::new(
        "sasl.oauthbearer.allow.unverified.issuer",
        Boolean,
        Some("false"),
    )
    .not_supported_yet()
    .doc("Whether tokens of any issuer are taken."),
    ConfigKey::new("sasl.oauthbearer.assertion.algorithm", Text, Some("RS256"))
        .one_of_ignoring_case(&["ES256", "RS256"])
        .not_supported_yet()
        .doc("Algorithm that signs assertions."),
    ConfigKey::new("sasl.oauthbearer.assertion.claim.aud", Text, None)
        .not_supported_yet()
        .doc("Audience claim of assertions."),
    ConfigKey::new(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        Int,
        Some("300"),
    )
    .between(0, 86400)
    .not_supported_yet()
    .doc("Life of an assertion."),
    ConfigKey::new("sasl.oauthbearer.assertion.claim.iss", Text, None)
        .not_supported_yet()
        .doc("Issuer claim of assertions."),
    ConfigKey::new(
        "sasl.oauthbearer.assertion.claim.jti.include",
        Boolean,
        Some("false"),
    )
    .not_supported_yet()
    .doc("Whether assertions get an id."),
    ConfigKey::new(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        Int,
        Some("60"),
    )
    .between(0, 3600)
    .not_supported_yet()
    .doc("How far back an assertion is valid."),
    ConfigKey::new("sasl.oauthbearer.assertion.claim.sub", Text, None)
        .not_supported_yet()
        .doc("Subject claim of assertions."),
    ConfigKey::new("sasl.oauthbearer.assertion.file", Text, None)
        .not_supported_yet()
        .doc("File with a ready assertion."),
    ConfigKey::new("sasl.oauthbearer.assertion.private.key.file", Text, None)
        .not_supported_yet()
        .doc("File with the key that signs assertions."),
    ConfigKey::new(
        "sasl.oauthbearer.assertion.private.key.passphrase",
        Password,
        None,
    )
    .not_supported_yet()
    .doc("Passphrase of that key."),
    ConfigKey::new("sasl.oauthbearer.assertion.template.file", Text, None)
        .not_supported_yet()
        .doc("File with a template for assertions."),
    ConfigKey::new("sasl.oauthbearer.client.credentials.client.id", Text, None)
        .not_supported_yet()
        .doc("Client id for the credentials grant."),
    ConfigKey::new(
        "sasl.oauthbearer.client.credentials.client.secret",
        Password,
        None,
    )
    .not_supported_yet()
    .doc("Client secret for the credentials grant."),
    ConfigKey::new("sasl.oauthbearer.clock.skew.seconds", Int, Some("30"))
        .not_supported_yet()
        .doc("Clock difference that is allowed."),
    ConfigKey::new("sasl.oauthbearer.expected.audience", List, Some(""))
        .not_supported_yet()
        .doc("Audiences that tokens must name."),
    ConfigKey::new("sasl.oauthbearer.expected.issuer", Text, None)
        .not_supported_yet()
        .doc("Issuer that tokens must name."),
    ConfigKey::new("sasl.oauthbearer.jwks.endpoint.url", Text, None)
        .not_supported_yet()
        .doc("Where the provider's keys are found."),
    ConfigKey::new(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        Long,
        Some("3600000"),
    )
    .not_supported_yet()
    .doc("How often the provider's keys are fetched."),
    ConfigKey::new(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        Long,
        Some("100"),
    )
    .not_supported_yet()
    .doc("First wait before a failed fetch of keys is tried again."),
    ConfigKey::new(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        Long,
        Some("10000"),
    )
    .not_supported_yet()
    .doc("Longest wait before a failed fetch of keys is tried again."),
    ConfigKey::new(
        "sasl.oauthbearer.jwt.retriever.class",
        Class,
        Some("org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever"),
    )
    .not_supported_yet()
    .doc("Class that gets tokens."),
    ConfigKey::new(
        "sasl.oauthbearer.jwt.validator.class",
        Class,
        Some("org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator"),
    )
    .not_supported_yet()
    .doc("Class that checks tokens."),
    ConfigKey::new("sasl.oauthbearer.scope", Text, None)
        .not_supported_yet()
        .doc("Scope asked for with a token."),
    ConfigKey::new("sasl.oauthbearer.scope.claim.name", Text, Some("scope"))
        .not_supported_yet()
        .doc("Claim that holds the scope."),
    ConfigKey::new("sasl.oauthbearer.sub.claim.name", Text, Some("sub"))
        .not_supported_yet()
        .doc("Claim that holds the subject."),
    ConfigKey::new("sasl.oauthbearer.token.endpoint.url", Text, None)
        .not_supported_yet()
        .doc("Where tokens are got."),
];
