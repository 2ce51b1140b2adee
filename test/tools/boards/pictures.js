// Which files the pictures of the documents show, and the table that says with which
// content they were drawn: a Go test reads it.
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

const page = (...names) => names.map((name) => `internal/page/${name}`);

const sources = {
  page: page('page.html', 'node_objects.html', 'parts.html', 'page.css', 'page.js'),
  cluster: page('cluster.html', 'parts.html', 'page.css', 'cluster.css', 'cluster.js'),
  pod: page('cluster_objects.html', 'parts.html', 'page.css', 'cluster.css'),
  top: ['internal/top/testdata/claims-160.txt'],
  overview: ['dashboards/core/overview.json'],
  claim: ['dashboards/core/claim.json'],
};

/** Returns the picture's name of a board, or none. */
export function pictureOf(board) {
  return Object.keys(sources).find((name) => sources[name].includes(`dashboards/${board}.json`));
}

/** Writes the lines of some pictures into the table of a folder. */
export async function writeSources(repository, folder, names) {
  const file = path.join(folder, 'sources.csv');
  const text = await readFile(file, 'utf8').catch(() => '');
  const lines = new Map(text.trimEnd().split('\n').slice(1).map((line) => [line.split(',')[0], line]));
  for (const name of names) {
    const hash = createHash('sha256');
    for (const source of sources[name]) {
      hash.update(await readFile(path.join(repository, source)));
    }
    lines.set(name, [name, sources[name].join(' '), hash.digest('hex').slice(0, 12)].join(','));
  }
  await writeFile(file, ['picture,sources,sha256', ...[...lines.keys()].sort().map((name) => lines.get(name))].join('\n') + '\n');
}
