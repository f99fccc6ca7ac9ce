//! Jobs of Heritrix 3 that become profiles.

use std::time::Duration;

use opilio_profile::{
    ImportedProfile, NamedFiles, Profile, ProfileContext, Stage, Strategy, UnconvertedPart,
    import_heritrix,
};
use opilio_uri::Uri;
use serde_json::json;

use crate::context;

const JOB: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<beans xmlns="http://www.springframework.org/schema/beans" xmlns:p="http://www.springframework.org/schema/p">
 <bean id="simpleOverrides" class="org.springframework.beans.factory.config.PropertyOverrideConfigurer">
  <property name="properties"><value>
# who
metadata.operatorContactUrl=https://archive.kb.nl/crawl
metadata.jobName=papers
disposition.minDelayMs=4000
  </value></property>
 </bean>
 <bean id="longerOverrides" class="org.springframework.beans.factory.config.PropertyOverrideConfigurer">
  <property name="properties"><props><prop key="seeds.textSource.value">
# papers
http://www.kb.nl/
+http://(nl,kb,
  </prop></props></property>
 </bean>
 <bean id="metadata" class="org.archive.modules.CrawlMetadata" autowire="byName">
  <property name="operatorContactUrl" value="[see override above]"/>
  <property name="robotsPolicyName" value="robotsTxtOnly"/>
  <property name="userAgentTemplate" value="Mozilla/5.0 (compatible; heritrix/@VERSION@ +@OPERATOR_CONTACT_URL@)"/>
 </bean>
 <bean id="seeds" class="org.archive.modules.seeds.TextSeedModule">
  <property name="textSource"><bean class="org.archive.spring.ConfigString"><property name="value"><value># none</value></property></bean></property>
 </bean>
 <bean id="scope" class="org.archive.modules.deciderules.DecideRuleSequence">
  <property name="rules"><list>
   <bean class="org.archive.modules.deciderules.RejectDecideRule"/>
   <ref bean="acceptSurts"/>
   <bean class="org.archive.modules.deciderules.TooManyHopsDecideRule"><property name="maxHops" value="7"/></bean>
   <bean class="org.archive.modules.deciderules.TransclusionDecideRule"/>
   <bean class="org.archive.modules.deciderules.surt.SurtPrefixedDecideRule">
    <property name="decision" value="REJECT"/><property name="seedsAsSurtPrefixes" value="false"/>
    <property name="surtsSource"><bean class="org.archive.spring.ConfigString"><property name="value"><value>
+http://(nl,kb,private,
    </value></property></bean></property>
   </bean>
   <bean class="org.archive.modules.deciderules.MatchesListRegexDecideRule">
    <property name="decision" value="REJECT"/>
    <property name="regexList"><list>
     <value>.*/calendar/.*</value>
     <value>.*?(/[^/]+)\1\1.*</value>
    </list></property>
   </bean>
   <bean class="org.archive.modules.deciderules.ScriptedDecideRule"><property name="engineName" value="groovy"/></bean>
   <bean class="org.archive.modules.deciderules.NotOnHostsDecideRule"><property name="decision" value="REJECT"/></bean>
   <bean class="org.archive.modules.deciderules.PrerequisiteAcceptDecideRule"/>
   <bean class="org.archive.modules.deciderules.SchemeNotInSetDecideRule"/>
  </list></property>
 </bean>
 <bean id="acceptSurts" class="org.archive.modules.deciderules.surt.SurtPrefixedDecideRule"/>
 <bean id="disposition" class="org.archive.crawler.postprocessor.DispositionProcessor">
  <property name="delayFactor" value="2.5"/>
 </bean>
 <bean id="frontier" class="org.archive.crawler.frontier.BdbFrontier" p:maxRetries="5">
  <property name="queueTotalBudget" value="-1"/>
  <property name="dumpPendingAtClose" value="true"/>
 </bean>
 <bean id="crawlController" class="org.archive.crawler.framework.CrawlController">
  <property name="maxToeThreads" value="12"/>
 </bean>
 <bean id="crawlLimiter" class="org.archive.crawler.framework.CrawlLimitEnforcer">
  <property name="maxTimeSeconds" value="86400"/>
 </bean>
 <bean id="fetchHttp" class="org.archive.modules.fetcher.FetchHTTP">
  <property name="timeoutSeconds" value="10"/><property name="maxLengthBytes" value="1000000"/>
 </bean>
 <bean id="extractorHtml" class="org.archive.modules.extractor.ExtractorHTML"/>
 <bean id="extractorHttp" class="org.archive.modules.extractor.ExtractorHTTP"/>
 <bean id="extractorJs" class="org.archive.modules.extractor.ExtractorJS"><property name="enabled" value="false"/></bean>
 <bean id="youtube" class="org.archive.modules.extractor.ExtractorYoutubeDL"/>
 <bean id="fetchProcessors" class="org.archive.modules.FetchChain">
  <property name="processors"><list>
   <ref bean="fetchHttp"/><ref bean="extractorHttp"/><ref bean="extractorHtml"/><ref bean="extractorJs"/>
  </list></property>
 </bean>
 <bean id="warcWriter" class="org.archive.modules.writer.WARCWriterProcessor">
  <property name="prefix" value="PAPERS"/><property name="maxFileSizeBytes" value="500000000"/>
 </bean>
 <bean id="slowly" class="org.archive.spring.Sheet">
  <property name="map"><map>
   <entry key="disposition.minDelayMs" value="20000"/>
   <entry key="disposition.maxDelayMs" value="60000"/>
   <entry key="extractorHtml.maxElementLength" value="1024"/>
  </map></property>
 </bean>
 <bean class="org.archive.crawler.spring.SurtPrefixesSheetAssociation">
  <property name="surtPrefixes"><list><value>http://(nl,kb,slow,</value></list></property>
  <property name="targetSheetNames"><list><value>slowly</value></list></property>
 </bean>
</beans>
"#;

fn import(xml: &str) -> ImportedProfile {
    import_heritrix(xml, NamedFiles::In("".as_ref()), &context().builtins).unwrap()
}

fn parse(toml: &str) -> Profile {
    let context = ProfileContext {
        seeds_elsewhere: false,
        ..context()
    };
    Profile::parse("papers.toml", toml, &context)
        .unwrap_or_else(|faults| panic!("{faults}\n{toml}"))
}

#[test]
fn logs_are_imported_and_action_folders_are_listed() {
    let modules = r#"
 <bean id="loggerModule" class="org.archive.crawler.reporting.CrawlerLoggerModule"><property name="logExtraInfo" value="true"/></bean>
 <bean id="actionDirectory" class="org.archive.crawler.framework.ActionDirectory">
  <property name="actionDir" value="../inbox"/><property name="doneDir" value="${launchId}/actions-done"/>
 </bean>
 <bean id="candidateScoper" class="org.archive.crawler.prefetch.CandidateScoper"><property name="logToFile" value="false"/></bean>
 <bean id="scope" class="org.archive.modules.deciderules.DecideRuleSequence">
  <property name="logToFile" value="true"/><property name="logExtraInfo" value="true"/>"#;
    let scope = r#" <bean id="scope" class="org.archive.modules.deciderules.DecideRuleSequence">"#;
    let imported = import(&JOB.replacen(scope, modules, 1));
    let logs = parse(&imported.toml).logs;
    assert!(logs.extra_info && logs.scope, "{}", imported.toml);
    let left = |bean: &str| -> Vec<&str> {
        let of_bean = imported.left.iter().filter(|left| left.bean.contains(bean));
        of_bean.map(|left| left.problem.as_str()).collect()
    };
    assert_eq!(
        left("ActionDirectory"),
        [r#"actionDir = "../inbox": the folder is `action` in the folder of the job"#]
    );
    let of_scope = left("DecideRuleSequence");
    assert_eq!(
        of_scope,
        [r#"logExtraInfo = "true": Opilio has no setting for it"#]
    );
    assert!(!parse(&import(JOB).toml).logs.extra_info);
}

/// Imports the job with additional beans, which come before its scope.
fn with_beans(beans: &str) -> ImportedProfile {
    let scope = r#" <bean id="scope" class="org.archive.modules.deciderules.DecideRuleSequence">"#;
    assert_eq!(JOB.matches(scope).count(), 1);
    import(&JOB.replacen(scope, &format!("{beans}\n{scope}"), 1))
}

#[test]
fn revisits_digests_and_checkpoints_are_imported() {
    let imported = with_beans(
        r#"
 <bean id="digest" class="org.archive.modules.extractor.HTTPContentDigest">
  <property name="stripRegex" value="&lt;!-- made at .*? --&gt;"/><property name="maxSizeBytes" value="2000000"/>
 </bean>
 <bean id="rescheduler" class="org.archive.crawler.postprocessor.ReschedulingProcessor">
  <property name="rescheduleDelaySeconds" value="86400"/>
 </bean>
 <bean id="checkpoints" class="org.archive.crawler.framework.CheckpointService">
  <property name="checkpointIntervalMinutes" value="90"/><property name="forgetAllButLatest" value="true"/>
 </bean>
 <bean id="seldom" class="org.archive.spring.Sheet"><property name="map"><map>
  <entry key="rescheduler.rescheduleDelaySeconds" value="604800"/>
 </map></property></bean>
 <bean id="once" class="org.archive.spring.Sheet"><property name="map"><map>
  <entry key="rescheduler.rescheduleDelaySeconds" value="-1"/>
 </map></property></bean>
 <bean class="org.archive.crawler.spring.SurtPrefixesSheetAssociation">
  <property name="surtPrefixes"><list><value>http://(nl,kb,weekly,</value></list></property>
  <property name="targetSheetNames"><list><value>seldom</value></list></property>
 </bean>
 <bean class="org.archive.crawler.spring.SurtPrefixesSheetAssociation">
  <property name="surtPrefixes"><list><value>http://(nl,kb,still,</value></list></property>
  <property name="targetSheetNames"><list><value>once</value></list></property>
 </bean>"#,
    );
    let profile = parse(&imported.toml);
    assert_eq!(
        imported.left.len(),
        import(JOB).left.len(),
        "{:?}",
        imported.left
    );
    let at = |uri: &str| {
        let settings = profile.effective(&Uri::parse(uri).unwrap());
        (settings.strategy, settings.revisit.fixed_wait.as_secs())
    };
    assert_eq!(at("http://www.kb.nl/"), (Strategy::Fixed, 86_400));
    assert_eq!(at("http://weekly.kb.nl/"), (Strategy::Fixed, 604_800));
    assert_eq!(at("http://still.kb.nl/").0, Strategy::Snapshot);
    assert_eq!(
        profile.settings().stacks.stage(Stage::Digest),
        ["regex-strip"]
    );
    assert_eq!(
        profile.plugins["regex-strip"].settings.to_string(),
        r#"{"max-size":2000000,"patterns":["<!-- made at .*? -->"]}"#
    );
    assert_eq!(profile.checkpoint.every.unwrap().as_secs(), 5_400);
    assert_eq!(profile.checkpoint.keep, 1);
}

#[test]
fn an_expression_that_cannot_be_stripped_is_listed() {
    let imported = with_beans(
        r#"
 <bean id="digest" class="org.archive.modules.extractor.HTTPContentDigest">
  <property name="stripRegex" value="(a)\1"/>
 </bean>
 <bean id="off" class="org.archive.crawler.postprocessor.ReschedulingProcessor">
  <property name="enabled" value="false"/><property name="rescheduleDelaySeconds" value="86400"/>
 </bean>"#,
    );
    let profile = parse(&imported.toml);
    assert_eq!(profile.settings().strategy, Strategy::Snapshot);
    assert!(profile.settings().stacks.stage(Stage::Digest).is_empty());
    let left: Vec<&UnconvertedPart> = imported
        .left
        .iter()
        .filter(|left| left.bean.contains("HTTPContentDigest"))
        .collect();
    assert!(
        matches!(*left, [one] if one.problem.contains("a back-reference")),
        "{left:?}"
    );
    let off = |left: &UnconvertedPart| left.bean.contains("ReschedulingProcessor");
    assert!(!imported.left.iter().any(off), "{:?}", imported.left);
}

#[test]
fn a_job_becomes_a_valid_profile_and_a_list_of_unconverted_parts() {
    let imported = import(JOB);
    let profile = parse(&imported.toml);
    profile.check_job().unwrap();
    assert_eq!(profile.name, "papers");
    assert_eq!(
        profile.operator.contact_url.as_deref(),
        Some("https://archive.kb.nl/crawl")
    );
    assert!(
        profile.user_agent.contains("compatible; opilio/"),
        "{}",
        profile.user_agent
    );
    assert_eq!(profile.seeds.list.len(), 1);
    assert_eq!(profile.seeds.surt_prefixes, ["http://(nl,kb,"]);
    assert_eq!(profile.workers, 12);
    assert_eq!(profile.limits.time.unwrap().as_secs(), 86400);
    assert_eq!(profile.archive.prefix, "PAPERS");
    let at = |uri: &str| profile.effective(&Uri::parse(uri).unwrap());
    let settings = at("http://www.kb.nl/");
    assert_eq!(settings.politeness.min_delay.as_secs(), 4);
    // The default of Heritrix, because the job does not set it.
    assert_eq!(settings.politeness.max_delay.as_secs(), 30);
    assert_eq!(settings.retry.max_retries, 5);
    assert_eq!(settings.fetch.total_timeout.as_secs(), 10);
    assert_eq!(at("http://slow.kb.nl/").politeness.min_delay.as_secs(), 20);
    assert_eq!(
        settings.stacks.stage(Stage::Scope),
        [
            "surt-scope",
            "hops",
            "transclusion",
            "surt-scope-out",
            "regex-list-out",
            "host-out",
            "prerequisite",
            "scheme"
        ]
    );
    let settings_of = |name: &str| profile.plugins[name].settings.to_string();
    assert_eq!(settings_of("hops"), r#"{"max":7}"#);
    assert_eq!(
        settings_of("regex-list-out"),
        r#"{"patterns":["/calendar/"],"then":"reject"}"#
    );
    assert_eq!(
        settings_of("surt-scope-out"),
        r#"{"from-seeds":false,"prefixes":["http://(nl,kb,private,"],"then":"reject"}"#
    );
    assert_eq!(
        settings_of("host-out"),
        r#"{"from-seeds":true,"otherwise":"reject","then":"pass"}"#
    );
    let extract = settings.stacks.stage(Stage::Extract);
    assert!(extract.iter().any(|name| name == "html"), "{extract:?}");
    for gone in ["js", "css", "pdf", "swf"] {
        assert!(
            !extract.iter().any(|name| name == gone),
            "{gone}: {extract:?}"
        );
    }

    let left: Vec<String> = imported
        .left
        .iter()
        .map(|one| format!("{}: {}", one.bean, one.problem))
        .collect();
    for problem in [
        "ScriptedDecideRule: scripts are not executed",
        "a back-reference has no equivalent",
        "youtube (ExtractorYoutubeDL): Opilio has no known equivalent",
        "slowly (Sheet): extractorHtml.maxElementLength = \"1024\"",
        "frontier (BdbFrontier): dumpPendingAtClose = \"true\"",
    ] {
        assert!(
            left.iter().any(|one| one.contains(problem)),
            "{problem}: {left:#?}"
        );
    }
    assert_eq!(left.len(), 5, "{left:#?}");
    let youtube = imported
        .left
        .iter()
        .find(|one| one.bean.starts_with("youtube"))
        .unwrap();
    assert!(
        JOB.lines()
            .nth(youtube.line - 1)
            .unwrap()
            .contains("youtube")
    );
}

#[test]
fn invalid_settings_are_left_out_and_listed() {
    let imported = import(
        "<beans><bean id='metadata' class='org.archive.modules.CrawlMetadata'>\
         <property name='operatorFrom' value='nobody'/><property name='jobName' value='x'/></bean>\
         <bean id='seeds' class='org.archive.modules.seeds.TextSeedModule'><property name='textSource'>\
         <bean class='org.archive.spring.ConfigFile'><property name='path' value='no-such-seeds.txt'/></bean>\
         </property></bean></beans>",
    );
    assert!(
        imported
            .toml
            .contains("# from = \"nobody\" # not a mail address"),
        "{}",
        imported.toml
    );
    assert!(
        imported
            .toml
            .contains("# seeds-file = \"no-such-seeds.txt\""),
        "{}",
        imported.toml
    );
    assert_eq!(imported.left.len(), 2, "{:?}", imported.left);
}

#[test]
fn files_of_other_kinds_are_refused() {
    let refused = |xml: &str| import_heritrix(xml, NamedFiles::In("".as_ref()), &[]).unwrap_err();
    assert!(refused("hello").contains("not XML"));
    assert!(refused("<html/>").contains("its root is <html>"));
    let bomb = "<!DOCTYPE b [<!ENTITY a '0123456789'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>\
        <!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;'><!ENTITY d '&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;'>]>\
        <beans><bean class='x'><property name='a'><value>&d;&d;&d;</value></property></bean></beans>";
    let _ = import_heritrix(bomb, NamedFiles::In("".as_ref()), &[]);
}

#[test]
fn files_named_by_an_untrusted_configuration_are_not_read() {
    let home = tempfile::tempdir().unwrap();
    let secret = home.path().join("secret.txt");
    std::fs::write(&secret, "http://secret.example/\n").unwrap();
    let import = |module: &str| {
        let file = secret.display().to_string();
        let xml = format!("<beans>{}</beans>", module.replace("FILE", &file));
        let builtins = context().builtins;
        (
            import_heritrix(&xml, NamedFiles::In(home.path()), &builtins),
            import_heritrix(&xml, NamedFiles::Unread, &builtins),
        )
    };
    let source =
        "<bean class='org.archive.spring.ConfigFile'><property name='path' value='FILE'/></bean>";
    let seeds = format!(
        "<bean id='seeds' class='org.archive.modules.seeds.TextSeedModule'><property name='textSource'>{source}</property></bean>"
    );
    let (trusted, other) = import(&seeds);
    assert!(trusted.unwrap().toml.contains("seeds-file"));
    let other = other.unwrap();
    assert!(!other.toml.contains("secret"), "{}", other.toml);
    assert_eq!(other.seeds_file, Some(secret.display().to_string()));

    let scope = format!(
        "<bean id='scope' class='org.archive.modules.deciderules.DecideRuleSequence'><property name='rules'><list>\
         <bean class='org.archive.modules.deciderules.surt.SurtPrefixedDecideRule'><property name='surtsSource'>{source}</property></bean>\
         </list></property></bean>"
    );
    let cookies = "<bean id='c' class='org.archive.modules.fetcher.BdbCookieStore'><property name='cookiesLoadFile' value='FILE'/></bean>";
    for (module, setting) in [
        (scope.as_str(), "tables.surts-1.file"),
        (cookies, "cookies.load"),
    ] {
        let (_, other) = import(module);
        let refused = other.unwrap_err();
        assert!(refused.contains(setting), "{refused}");
        assert!(!refused.contains("secret"), "{refused}");
    }
}

/// A job with nested beans, as in the profile that Heritrix ships.
const NESTED: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<beans xmlns="http://www.springframework.org/schema/beans">
 <bean id="metadata" class="org.archive.modules.CrawlMetadata">
  <property name="operatorContactUrl" value="https://archive.kb.nl/crawl"/>
 </bean>
 <bean id="preparer" class="org.archive.crawler.prefetch.FrontierPreparer">
  <property name="canonicalizationPolicy">
   <bean class="org.archive.modules.canonicalize.RulesCanonicalizationPolicy">
    <property name="rules"><list>
     <bean class="org.archive.modules.canonicalize.LowercaseRule"/>
     <bean class="org.archive.modules.canonicalize.StripExtraSlashes"/>
     <bean class="org.archive.modules.canonicalize.RegexRule">
      <property name="regex" value="(.*)[?&amp;]print=1"/><property name="format" value="$1"/>
     </bean>
     <bean class="org.example.OwnRule"/>
    </list></property>
   </bean>
  </property>
  <property name="queueAssignmentPolicy">
   <bean class="org.archive.crawler.frontier.HostnameQueueAssignmentPolicy">
    <property name="deferToPrevious" value="true"/><property name="forceQueueAssignment" value="one"/>
   </bean>
  </property>
  <property name="uriPrecedencePolicy">
   <bean class="org.archive.crawler.frontier.precedence.HopsUriPrecedencePolicy">
    <property name="basePrecedence" value="4"/>
   </bean>
  </property>
  <property name="costAssignmentPolicy"><bean class="org.archive.crawler.frontier.WagCostAssignmentPolicy"/></property>
 </bean>
 <bean id="frontier" class="org.archive.crawler.frontier.BdbFrontier">
  <property name="queuePrecedencePolicy">
   <bean class="org.archive.crawler.frontier.precedence.SuccessCountsQueuePrecedencePolicy">
    <property name="basePrecedence" value="5"/><property name="incrementCounts" value="10,200"/>
   </bean>
  </property>
 </bean>
 <bean id="fetchHttp" class="org.archive.modules.fetcher.FetchHTTP">
  <property name="acceptHeaders"><list><value>Accept-Language: nl</value></list></property>
  <property name="digestAlgorithm" value="md5"/>
  <property name="shouldFetchBodyRule">
   <bean class="org.archive.modules.deciderules.ContentTypeMatchesRegexDecideRule"><property name="regex" value="^text/.*"/></bean>
  </property>
  <property name="httpProxyHost" value="proxy.kb.nl"/><property name="httpProxyPort" value="3128"/>
 </bean>
 <bean id="fetchProcessors" class="org.archive.modules.FetchChain">
  <property name="processors"><list>
   <ref bean="fetchHttp"/>
   <bean class="org.archive.crawler.prefetch.QuotaEnforcer">
    <property name="hostMaxFetchSuccesses" value="500"/><property name="groupMaxAllKb" value="1024"/>
    <property name="serverMaxSuccessKb" value="9"/>
   </bean>
   <bean class="org.archive.crawler.prefetch.RuntimeLimitEnforcer">
    <property name="runtimeSec" value="3600"/><property name="expirationOperation" value="TERMINATE"/>
   </bean>
   <bean class="org.archive.modules.extractor.ExtractorUniversal"/>
  </list></property>
 </bean>
 <bean id="credentialStore" class="org.archive.modules.credential.CredentialStore">
  <property name="credentials"><map><entry key="own">
   <bean class="org.archive.modules.credential.HtmlFormCredential"><property name="domain" value="kb.nl"/></bean>
  </entry></map></property>
 </bean>
 <bean id="warcWriter" class="org.archive.modules.writer.WARCWriterChainProcessor">
  <property name="template" value="${prefix}-${timestamp17}"/>
 </bean>
</beans>"#;

#[test]
fn nested_beans_are_imported_or_listed() {
    let builtins = context().builtins;
    let folder = tempfile::tempdir().unwrap();
    let imported = import_heritrix(NESTED, NamedFiles::In(folder.path()), &builtins).unwrap();
    let toml: toml::Table = imported.toml.parse().unwrap();
    let settings = serde_json::to_value(toml).unwrap();
    let own = json!({ "regex": "(.*)[?&]print=1", "replace": "${1}" });
    for (setting, value) in [
        (
            "/canonicalization/rules",
            json!(["lowercase", "strip-extra-slashes", own]),
        ),
        ("/uri/precedence-policy", json!("hops")),
        ("/uri/precedence", json!(4)),
        ("/uri/cost-policy", json!("query")),
        ("/queue/precedence-policy", json!("success-counts")),
        ("/queue/precedence", json!(5)),
        ("/queue/precedence-steps", json!([10, 200])),
        ("/fetch/headers/Accept-Language", json!("nl")),
        ("/fetch/proxy", json!("http://proxy.kb.nl:3128")),
        ("/quotas/host/succeeded", json!(500)),
        ("/quotas/queue/bytes", json!("1024KiB")),
        ("/limits/time", json!("1h")),
    ] {
        let found = settings.pointer(setting);
        assert_eq!(found, Some(&value), "{setting}: {}", imported.toml);
    }
    // HostnameQueueAssignmentPolicy has queues of host and port, which is the default.
    assert_eq!(settings.pointer("/frontier/queue-key"), None);
    let left: Vec<&str> = imported
        .left
        .iter()
        .map(|left| left.problem.as_str())
        .collect();
    for problem in [
        "Opilio has no known equivalent",
        "forceQueueAssignment = \"one\"",
        "digestAlgorithm = \"md5\"",
        "shouldFetchBodyRule = \"ContentTypeMatchesRegexDecideRule\"",
        "serverMaxSuccessKb = \"9\"",
        "a profile contains no passwords",
        "template = \"${prefix}-${timestamp17}\"",
    ] {
        assert!(
            left.iter().any(|one| one.contains(problem)),
            "{problem}: {left:#?}"
        );
    }
    for class in ["OwnRule", "ExtractorUniversal"] {
        let named = imported.left.iter().any(|left| left.bean == class);
        assert!(named, "{class}: {:#?}", imported.left);
    }
    assert_eq!(left.len(), 8, "{left:#?}");
}

#[test]
fn queue_settings_of_a_sheet_are_lost_only_for_paths() {
    let own = "<value>http://(nl,kb,slow,</value>";
    let more = "<value>http://(nl,kb,www,)/</value><value>http://(nl,kb,www,)/deep</value>";
    let imported = import(&JOB.replace(own, more));
    let profile = parse(&imported.toml);
    let delay = |url: &str| {
        let queue = profile.queue_name(&Uri::parse(url).unwrap());
        profile.queue_settings(&queue).politeness.min_delay
    };
    assert_eq!(delay("http://www.kb.nl/deep/a"), Duration::from_secs(20));
    let left: Vec<&UnconvertedPart> = imported
        .left
        .iter()
        .filter(|it| it.bean.starts_with("slowly"))
        .collect();
    let lost = left
        .iter()
        .find(|it| it.problem.starts_with("politeness.min-delay"));
    let lost = lost.unwrap_or_else(|| panic!("{:#?}", imported.left));
    let line = JOB.lines().nth(lost.line - 1).unwrap();
    assert!(line.contains("id=\"slowly\""), "{line}");
    assert!(lost.problem.ends_with(')'), "{lost:?}");
}

#[test]
fn overrides_are_read_like_java_properties_or_listed() {
    let overrides = r#"metadata.operatorContactUrl=https://archive.kb.nl/crawl
metadata.jobName : pap\u00e9rs
metadata.description = line one, \
    continued
! a comment
nosuch.foo=3
seeds.textSource.nothing.value=4
"#;
    let xml = format!(
        "<beans><bean id='simpleOverrides' class='org.springframework.beans.factory.config.PropertyOverrideConfigurer'>\
         <property name='properties'><value>\n{overrides}</value></property></bean>\
         <bean id='metadata' class='org.archive.modules.CrawlMetadata'/>\
         <bean id='seeds' class='org.archive.modules.seeds.TextSeedModule'><property name='textSource'>\
         <bean class='org.archive.spring.ConfigString'><property name='value'><value>\n\
         http://www.kb.nl/\n# a comment\na line that is not a seed\nhttp://example.nl/ tag\n</value></property></bean></property></bean>\
         <bean id='scope' class='org.archive.modules.deciderules.DecideRuleSequence'><property name='rules'><list>\
         <bean class='org.archive.modules.deciderules.TooManyPathSegmentsDecideRule'><property name='maxPathDepth' value='many'/></bean>\
         <ref bean='missing'/></list></property></bean></beans>"
    );
    let imported = import(&xml);
    let check_contains =
        |text: &str| assert!(imported.toml.contains(text), "{text}: {}", imported.toml);
    check_contains("description = \"line one, continued\"");
    check_contains("\"http://www.kb.nl/\"");
    assert!(!imported.toml.contains("# seeds"), "{}", imported.toml);
    let left: Vec<&str> = imported
        .left
        .iter()
        .map(|one| one.problem.as_str())
        .collect();
    for problem in [
        "nosuch.foo = \"3\": there is no such bean or property to set",
        "seeds.textSource.nothing.value = \"4\": there is no such bean",
        "maxPathDepth = \"many\": not a whole number; the default applies",
        "it names a rule \"missing\", and there is no such bean",
        "a line that is not a seed",
    ] {
        assert!(
            left.iter().any(|one| one.contains(problem)),
            "{problem}: {left:#?}"
        );
    }
}

/// If all expressions of a rule have to match, the rule without one of them matches more URIs, and rejects more. So it is left out.
#[test]
fn a_rule_that_would_decide_on_more_without_an_expression_is_left_out() {
    let scope = |class: &str, or: bool| {
        let imported = import(&format!(
            "<beans><bean id='scope' class='org.archive.modules.deciderules.DecideRuleSequence'><property name='rules'><list>\
             <bean class='org.archive.modules.deciderules.{class}'><property name='decision' value='REJECT'/>\
             <property name='listLogicalOr' value='{or}'/><property name='regexList'><list>\
             <value>.*calendar.*</value><value>.*(?!x).*</value></list></property></bean></list></property></bean></beans>"
        ));
        let is_listed = imported
            .left
            .iter()
            .any(|one| one.problem.contains("the rule is left out"));
        let is_imported = imported.toml.contains("calendar");
        assert_ne!(is_listed, is_imported, "{}", imported.toml);
        is_imported
    };
    assert!(scope("MatchesListRegexDecideRule", true));
    assert!(!scope("MatchesListRegexDecideRule", false));
    assert!(!scope("NotMatchesListRegexDecideRule", true));
    assert!(scope("NotMatchesListRegexDecideRule", false));
}
