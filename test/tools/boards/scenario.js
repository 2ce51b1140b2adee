// Starts the demo and a Prometheus that scrapes it, and says which boards to draw.
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

// scenarios: for how long Prometheus scrapes, under which clusters, and what is drawn
// instead of every board.
export const scenarios = {
  live: { minutes: 15, clusters: [''] },
  fresh: { minutes: 1, clusters: [''] },
  clusters: { minutes: 10, clusters: ['a', 'b'] },
  pending: { minutes: 6, clusters: [''], views: pendingViews },
};

// Boards of one claim or workload begin with the first by name, which waits in the
// demo. Most readers come by a link to one that runs: these have a query that finds it.
const chosen = {
  'core/claim': 'group by (namespace, resourceclaim) (dra_claim_info{namespace="ml-training", resourceclaim=~"llama.*"})',
  'core/workload': workloadQuery('pretraining', 'gpt'),
};

function workloadQuery(namespace, name) {
  const query = `group by (namespace, workload_kind, workload) (dra_workload_info{namespace="${namespace}", workload="${name}"})`;
  return `label_replace(${query}, "kind", "$1", "workload_kind", "(.*)")`;
}

/** Returns the variables with which a board is drawn; other variables have their first value. */
export async function boardVariables(board, prometheus) {
  if (!chosen[board]) {
    return {};
  }
  return (await query(prometheus, chosen[board]))[0]?.metric ?? {};
}

// pendingViews are boards of workloads and claims that wait.
async function pendingViews(prometheus) {
  const views = [];
  const add = (board, labels, name) => views.push({ board, name: `${board}-${name}`, variables: labels });
  for (const [namespace, name] of [
    ['llm', 'post-train'],
    ['batch', 'distill'],
  ]) {
    const found = await query(prometheus, workloadQuery(namespace, name));
    if (found.length === 0) {
      throw new Error(`the demo has no workload ${namespace}/${name}`);
    }
    add('core/workload', found[0].metric, name);
  }
  const claims = await query(prometheus, 'sort_desc(max by (namespace, resourceclaim) (dra_claim_pending_since_timestamp_seconds{resourceclaim!=""}))');
  if (claims.length === 0) {
    throw new Error('no claim of the demo is pending');
  }
  for (const { metric } of claims.slice(-2)) {
    add('core/claim', metric, metric.resourceclaim);
  }
  return views;
}

async function query(prometheus, expression) {
  const response = await fetch(`${prometheus}/api/v1/query?${new URLSearchParams({ query: expression })}`);
  const answer = await response.json();
  if (answer.status !== 'success') {
    throw new Error(`${expression}: ${answer.error}`);
  }
  return answer.data.result;
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

// configuration is that of deploy/compose, with the addresses of this run.
function configuration(repository, ports, clusters) {
  const targets = clusters.flatMap((cluster) =>
    ['gpu-node-1', 'gpu-node-3', 'cluster'].map((instance) => ({
      targets: [`127.0.0.1:${ports[instance]}`],
      labels: { job: 'dra-exporter', instance, ...(cluster && { cluster }) },
    }))
  );
  return JSON.stringify({
    global: { scrape_interval: '10s', evaluation_interval: '30s' },
    rule_files: ['alerts', 'recording'].map((name) => path.join(repository, `alerts/${name}.yaml`)),
    scrape_configs: [{ job_name: 'demo', honor_labels: true, always_scrape_classic_histograms: true, static_configs: targets }],
  });
}

async function start(program, flags, log) {
  const file = await open(log, 'w');
  const child = spawn(program, flags, { stdio: ['ignore', file.fd, file.fd] });
  await file.close();
  const failure = new Promise((resolve) => child.on('error', resolve));
  const ended = new Promise((resolve) => child.on('exit', (code) => resolve(new Error(`${path.basename(program)} ended with ${code}, see ${log}`))));
  return { stop: () => child.kill('SIGTERM'), ended, failure };
}

/** exporter is the program whose demo runs. */
export const exporter = (repository) => path.join(repository, 'test/.bin/agent/dra-exporter');

function startDemo(repository, folder, ports) {
  const flags = [
    'demo',
    `--web.listen-address=127.0.0.1:${ports['gpu-node-1']}`,
    `--cluster.listen-address=127.0.0.1:${ports.cluster}`,
    `--training.listen-address=127.0.0.1:${ports['gpu-node-3']}`,
  ];
  return start(exporter(repository), flags, path.join(folder, 'demo.log'));
}

function startPrometheus(repository, folder, config, port) {
  const flags = [`--config.file=${config}`, `--storage.tsdb.path=${path.join(folder, 'data')}`, `--web.listen-address=127.0.0.1:${port}`];
  return start(path.join(repository, 'test/.bin/prometheus/prometheus'), flags, path.join(folder, 'prometheus.log'));
}

// run waits while programs run, and returns what stops them.
async function run(programs, folder, minutes) {
  const stop = async () => {
    programs.forEach((program) => program.stop());
    await Promise.all(programs.map((program) => Promise.race([program.ended, program.failure])));
    await rm(folder, { recursive: true, force: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => stop().finally(() => process.exit(1)));
  }
  const failed = await Promise.race([...programs.flatMap((program) => [program.ended, program.failure]), sleep(minutes * 60_000)]);
  if (failed) {
    // The folder stays: the error names a log in it.
    programs.forEach((program) => program.stop());
    throw failed;
  }
  return stop;
}

async function prepare() {
  const ports = {};
  for (const name of ['gpu-node-1', 'gpu-node-3', 'cluster', 'prometheus']) {
    ports[name] = await freePort();
  }
  return { folder: await mkdtemp(path.join(tmpdir(), 'boards-')), ports };
}

/** Starts the programs of a scenario, and waits until Prometheus has scraped for long enough. */
export async function startScenario(repository, scenario, minutes) {
  const { folder, ports } = await prepare();
  const config = path.join(folder, 'prometheus.yaml');
  // YAML contains JSON.
  await writeFile(config, configuration(repository, ports, scenario.clusters));
  const programs = [await startDemo(repository, folder, ports), await startPrometheus(repository, folder, config, ports.prometheus)];
  const stop = await run(programs, folder, minutes);
  return { address: `http://127.0.0.1:${ports.prometheus}`, stop };
}

/** Starts the demo alone, and waits until its graphs have so many minutes. */
export async function runDemo(repository, minutes) {
  const { folder, ports } = await prepare();
  const stop = await run([await startDemo(repository, folder, ports)], folder, minutes);
  const nodes = ['gpu-node-1', 'gpu-node-3'].map((name) => `http://127.0.0.1:${ports[name]}`);
  return { nodes, cluster: `http://127.0.0.1:${ports.cluster}`, stop };
}
