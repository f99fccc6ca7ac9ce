import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.netarchivesuite.heritrix3wrapper.EngineResult;
import org.netarchivesuite.heritrix3wrapper.Heritrix3Wrapper;
import org.netarchivesuite.heritrix3wrapper.Heritrix3Wrapper.CrawlControllerState;
import org.netarchivesuite.heritrix3wrapper.JobResult;
import org.netarchivesuite.heritrix3wrapper.ResultStatus;
import org.netarchivesuite.heritrix3wrapper.ScriptResult;
import org.netarchivesuite.heritrix3wrapper.StreamResult;

/**
 * Tests the Heritrix API with heritrix3-wrapper, the client of Heritrix 3 in NetarchiveSuite: jobs from creation to end.
 *
 * <p>usage: Life HOST PORT USER PASSWORD CXML JOBS
 */
public class Life {
  /** Number of checks for a state. */
  private static final int TRIES = 600;

  /** Time between two checks, in milliseconds. */
  private static final int PAUSE = 200;

  public static void main(String[] arguments) throws Exception {
    Path cxml = Path.of(arguments[4]);
    Path jobs = Path.of(arguments[5]);
    Heritrix3Wrapper engine =
        Heritrix3Wrapper.getInstance(
            arguments[0], Integer.parseInt(arguments[1]), null, null, arguments[2], arguments[3]);

    EngineResult ready = engine.waitForEngineReady(TRIES, PAUSE);
    expect(ready.status == ResultStatus.OK && ready.engine != null, "the engine is not ready");
    String name = "by-wrapper";
    EngineResult made = engine.createNewJob(name);
    expect(made.status == ResultStatus.OK, "a job cannot be created: " + made.responseCode);
    expect(
        made.engine.jobs.stream().anyMatch(job -> name.equals(job.shortName)),
        "a job that was created is not in the list");
    // As NetarchiveSuite does, the configuration is written to the path that the job reports.
    JobResult job = engine.job(name);
    Files.copy(cxml, Path.of(job.job.primaryConfig), StandardCopyOption.REPLACE_EXISTING);
    expect(engine.rescanJobDirectory().status == ResultStatus.OK, "the jobs cannot be rescanned");
    job = engine.buildJobConfiguration(name);
    expect("Ready".equals(job.job.statusDescription), "built, it is " + job.job.statusDescription);
    expect(engine.launchJob(name).status == ResultStatus.OK, "it cannot be launched");
    job = wait(engine, name, CrawlControllerState.PAUSED);
    expect(job.job.launchCount == 1, "launched " + job.job.launchCount + " times");
    expect(engine.checkpointJob(name).status == ResultStatus.OK, "no checkpoint can be made");
    engine.unpauseJob(name);
    job = wait(engine, name, CrawlControllerState.FINISHED);
    expect(
        "Finished: FINISHED".equals(job.job.statusDescription),
        "it ended as " + job.job.statusDescription);
    long documents = job.job.uriTotalsReport.downloadedUriCount;
    expect(documents >= 2, "only " + documents + " documents");
    expect(!job.job.crawlLogTail.isEmpty(), "crawl.log has no lines");

    File log = new File(job.job.crawlLogFilePath);
    byte[] whole = Files.readAllBytes(log.toPath());
    try (StreamResult part = engine.anypath(log.getAbsolutePath(), 0L, 20L)) {
      expect(part.responseCode == 206, "a part of crawl.log has status " + part.responseCode);
      byte[] got = part.in.readAllBytes();
      expect(
          new String(whole, StandardCharsets.UTF_8).startsWith(new String(got, StandardCharsets.UTF_8))
              && got.length >= 20,
          "a part of crawl.log is " + new String(got, StandardCharsets.UTF_8));
    }
    try (StreamResult other = engine.anypath("/etc/passwd", null, null)) {
      expect(other.responseCode == 403, "a file outside of the job has status " + other.responseCode);
    }
    ScriptResult script = engine.ExecuteShellScriptInJob(name, "groovy", "rawOut.println(1)");
    expect(script.responseCode == 403, "a script has status " + script.responseCode);

    job = engine.terminateJob(name);
    expect(job.status == ResultStatus.OK, "an ended job cannot be ended again: " + job.responseCode);
    job = engine.teardownJob(name);
    expect("Unbuilt".equals(job.job.statusDescription), "torn down, it is " + job.job.statusDescription);

    String again = name + "-again";
    job = engine.copyJob(name, again, false);
    expect(job.status == ResultStatus.OK, "it cannot be copied: " + job.responseCode);
    engine.launchJob(again);
    wait(engine, again, CrawlControllerState.PAUSED);
    engine.pauseJob(again);
    engine.terminateJob(again);
    job = wait(engine, again, CrawlControllerState.FINISHED);
    expect(
        "Finished: ABORTED".equals(job.job.statusDescription),
        "terminated, it is " + job.job.statusDescription);
    expect(Files.isDirectory(jobs.resolve(again)), "the job has no folder");
    System.out.println("heritrix3-wrapper: jobs were made, built, launched, ended and copied");
    System.exit(0);
  }

  private static JobResult wait(Heritrix3Wrapper engine, String name, CrawlControllerState state)
      throws Exception {
    JobResult job = engine.waitForJobState(name, state, TRIES, PAUSE);
    expect(
        job.job != null && state.name().equals(job.job.crawlControllerState),
        name + " does not reach " + state + ": " + (job.job == null ? "nothing" : job.job.statusDescription));
    return job;
  }

  private static void expect(boolean condition, String what) {
    if (!condition) {
      System.err.println("heritrix3-wrapper: " + what);
      System.exit(1);
    }
  }
}
