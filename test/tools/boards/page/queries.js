// Queries over HTTP, and their results as frames in the shape in which Grafana's
// server hands them to its Prometheus source.
import { FieldType, rangeUtil } from '@grafana/data';
import { transformV2 } from 'grafana-prometheus-results';
import { interpolate, prometheusFormat } from './variables.js';

// SCRAPE_INTERVAL is the default of a Prometheus source in Grafana, in seconds.
const SCRAPE_INTERVAL = 15;

async function post(path, parameters) {
  const response = await fetch(path, { method: 'POST', body: new URLSearchParams(parameters) });
  const text = await response.text();
  let answer;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new Error(`${path}: ${response.status} ${text.slice(0, 200)}`);
  }
  if (answer.status !== 'success') {
    throw new Error(`${answer.errorType}: ${answer.error}`);
  }
  return answer.data;
}

/** Returns the values of a query such as label_values(family, name). */
export async function labelValues(query, range) {
  const parts = query.match(/^label_values\((?:(.+),\s*)?(\w+)\)$/s);
  if (!parts) {
    throw new Error(`the query of a variable is not known: ${query}`);
  }
  const parameters = new URLSearchParams({ start: range.from / 1000, end: range.to / 1000 });
  if (parts[1]) {
    parameters.append('match[]', parts[1]);
  }
  const response = await fetch(`/api/v1/label/${parts[2]}/values?${parameters}`);
  const answer = await response.json();
  if (answer.status !== 'success') {
    throw new Error(`${query}: ${answer.error}`);
  }
  return answer.data;
}

function duration(text) {
  return rangeUtil.intervalToMs(text) / 1000;
}

// steps returns the resolution of a query, and the values of $__interval and the like.
function steps(minimum, range, points) {
  const { intervalMs } = rangeUtil.calculateInterval({ from: range.from, to: range.to }, points, minimum || `${SCRAPE_INTERVAL}s`);
  const step = Math.max(intervalMs / 1000, 1);
  const scrape = minimum ? duration(minimum) : SCRAPE_INTERVAL;
  const seconds = Math.round((range.to - range.from) / 1000);
  return {
    step,
    scoped: {
      __interval: `${step}s`,
      __interval_ms: String(step * 1000),
      __rate_interval: `${Math.max(step + scrape, 4 * scrape)}s`,
      __range: `${seconds}s`,
      __range_s: String(seconds),
      __range_ms: String(seconds * 1000),
    },
  };
}

function legend(target, labels) {
  if (!target.legendFormat || target.legendFormat === '__auto') {
    const pairs = Object.entries(labels).filter(([name]) => name !== '__name__').map(([name, value]) => `${name}="${value}"`);
    if (target.legendFormat === '__auto' && pairs.length > 0) {
      return undefined;
    }
    const name = `${labels.__name__ ?? ''}{${pairs.join(', ')}}`;
    return name === '{}' ? target.expr : name;
  }
  return target.legendFormat.replace(/\{\{\s*(.+?)\s*\}\}/g, (whole, name) => labels[name] ?? '');
}

function frame(target, step, series) {
  const labels = series.metric ?? {};
  const samples = series.values ?? [series.value];
  const name = legend(target, labels);
  return {
    refId: target.refId,
    name,
    meta: { type: series.values ? 'timeseries-multi' : 'numeric-multi', custom: { resultType: series.values ? 'matrix' : 'vector' } },
    fields: [
      { name: 'Time', type: FieldType.time, config: { interval: step * 1000 }, values: samples.map(([time]) => time * 1000) },
      {
        name: labels.__name__ ?? 'Value',
        type: FieldType.number,
        labels,
        config: name === undefined ? {} : { displayNameFromDS: name },
        values: samples.map(([, value]) => number(value)),
      },
    ],
    length: samples.length,
  };
}

function number(text) {
  if (text === '+Inf') {
    return Infinity;
  }
  return text === '-Inf' ? -Infinity : parseFloat(text);
}

async function ask(target, range, points, variables, scoped) {
  const { step, scoped: times } = steps(target.interval, range, points);
  const query = interpolate(target.expr, variables, { ...times, ...scoped }, prometheusFormat);
  const align = (time) => Math.floor(time / 1000 / step) * step;
  const data = target.instant
    ? await post('/api/v1/query', { query, time: range.to / 1000 })
    : await post('/api/v1/query_range', { query, start: align(range.from), end: align(range.to), step });
  const result = data.resultType === 'scalar' ? [{ metric: {}, value: data.result }] : data.result;
  const frames = result.map((series) => frame(target, step, series));
  // Without a frame of its own a query that finds nothing would change the names of
  // the others: Value #A is Value when there is only one.
  return frames.length > 0 ? frames : [{ refId: target.refId, fields: [], length: 0, meta: {} }];
}

/** Runs the queries of a panel. Those that fail are in errors; the others are drawn. */
export async function runQueries(panel, range, points, variables, scoped) {
  const targets = (panel.targets ?? []).filter((target) => !target.hide);
  const answers = await Promise.allSettled(targets.map((target) => ask(target, range, points, variables, scoped)));
  const errors = answers.flatMap((answer, index) => (answer.status === 'rejected' ? [`${targets[index].refId}: ${answer.reason.message}`] : []));
  const frames = answers.flatMap((answer) => answer.value ?? []);
  return { errors, frames: transformV2({ data: frames }, { targets }, {}).data };
}

/** Returns the annotations of the board that are on: their times, titles and colours. */
export async function runAnnotations(board, range, points, variables) {
  const enabled = (board.annotations?.list ?? []).filter((each) => each.enable && each.expr);
  const answers = await Promise.allSettled(
    enabled.map(async (each) => {
      const target = { refId: 'Anno', expr: each.expr, interval: each.step, legendFormat: each.titleFormat };
      const frames = await ask(target, range, points, variables, {});
      return frames.filter((one) => one.length > 0).flatMap((one) => marks(each, one, range));
    })
  );
  return {
    errors: answers.flatMap((answer, index) => (answer.status === 'rejected' ? [`annotation ${enabled[index].name}: ${answer.reason.message}`] : [])),
    marks: answers.flatMap((answer) => answer.value ?? []),
  };
}

// marks joins samples that follow each other to one annotation, as Grafana does.
function marks(annotation, frame, range) {
  const [times, values] = frame.fields;
  if (annotation.useValueForTime) {
    const unique = [...new Set(values.values)].filter((time) => time >= range.from && time <= range.to);
    return unique.map((time) => ({ from: time, to: time, color: annotation.iconColor, title: frame.name }));
  }
  const regions = [];
  times.values.forEach((time, index) => {
    if (!(values.values[index] > 0)) {
      return;
    }
    const last = regions.at(-1);
    if (last && time - last.to <= times.config.interval) {
      last.to = time;
    } else {
      regions.push({ from: time, to: time, color: annotation.iconColor, title: frame.name });
    }
  });
  return regions;
}
