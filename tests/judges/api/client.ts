// Tests the types that openapi-typescript generates: lists the jobs, starts one, and reads statistics and files. The compiler
// checks the types, and a run checks the answers.

import createClient from "openapi-fetch";
import type { components, paths } from "./opilio.js";

const [url, token, crawled, resting] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${token}` } });

function expect(condition: boolean, what: string, found: unknown): asserts condition {
  if (!condition) throw new Error(`client.ts: ${what}: ${JSON.stringify(found)}`);
}

const job = (name: string) => ({ params: { path: { job: name } } });
const { data: list } = await client.GET("/api/v1/jobs", { params: { query: { sort: "-name" } } });
expect(list?.jobs.length === 2 && list.jobs[1]?.name === [crawled, resting].sort()[0], "the jobs", list);
const { error } = await client.GET("/api/v1/jobs/{job}", job("none"));
const problem: components["schemas"]["Problem"] | undefined = error;
expect(problem?.status === 404, "no job of this name", problem);
const started = await client.POST("/api/v1/jobs/{job}/start", job(resting));
expect(started.response.status === 202 && started.data !== undefined, "starting", started);
const stopped = await client.POST("/api/v1/jobs/{job}/stop", job(resting));
expect(stopped.data?.result === "the job will not start", "stopping", stopped);
const { data: figures } = await client.GET("/api/v1/jobs/{job}/statistics", job(crawled));
const { data: shown } = await client.GET("/api/v1/jobs/{job}/status", job(crawled));
expect(figures !== undefined && figures.queued === shown?.statistics.queued, "figures", figures);
const query = { kind: "log", limit: 1 } as const;
const { data: files } = await client.GET("/api/v1/jobs/{job}/files", { params: { path: { job: crawled }, query } });
const file = files?.files[0];
expect(file !== undefined && files?.after !== undefined, "the logs, a page at a time", files);
const part = await client.GET("/api/v1/jobs/{job}/files/{kind}/{name}", {
  params: { path: { job: crawled, kind: file.kind, name: file.name }, header: { "if-range": '"another version"', range: "bytes=0-3" } },
  parseAs: "arrayBuffer",
});
expect(part.response.status === 200 && Number(part.response.headers.get("content-length")) === file.size, "another version", part);
console.log(`client.ts: ${list.total} jobs, ${files.total} logs, ${file.size} bytes of ${file.name}`);
