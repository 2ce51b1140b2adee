// What Grafana does not export is drawn here, in a simple way: state timelines,
// heatmaps, texts, lists of alerts, and the lines of annotations.
import { useEffect, useLayoutEffect, useRef } from 'react';
import { FieldType, formattedValueToString, getFieldDisplayName, getValueFormat, renderMarkdown } from '@grafana/data';
import { measureText } from '@grafana/ui';

const AXIS_HEIGHT = 24;

/** What a panel shows instead of data. */
export function Message({ text, width, height }) {
  return (
    <div className="no-data" style={{ width, height }}>
      {text}
    </div>
  );
}

// ticks returns at most count round times of the range.
function ticks(range, count) {
  const minutes = [1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440];
  const span = range.to - range.from;
  const step = (minutes.find((each) => span / (each * 60_000) <= count) ?? 1440) * 60_000;
  const times = [];
  for (let time = Math.ceil(range.from / step) * step; time <= range.to; time += step) {
    times.push(time);
  }
  return times;
}

function TimeAxis({ range, left, width }) {
  return (
    <div style={{ position: 'relative', height: AXIS_HEIGHT, marginLeft: left, width }}>
      {ticks(range, width / 80).map((time) => (
        <span key={time} className="tick" style={{ left: ((time - range.from) / (range.to - range.from)) * width }}>
          {new Date(time).toISOString().slice(11, 16)}
        </span>
      ))}
    </div>
  );
}

// spans joins equal values that follow each other; a gap of more than a step ends one.
function spans(time, field, range) {
  const step = time.config.interval ?? 30_000;
  const joined = [];
  time.values.forEach((at, index) => {
    const value = field.values[index];
    const last = joined.at(-1);
    if (value === null || value === undefined) {
      return;
    }
    if (last && last.value === value && at - last.to <= step) {
      last.to = at;
    } else if (last && at - last.to <= step) {
      last.to = at;
      joined.push({ from: at, to: at, value });
    } else {
      joined.push({ from: at, to: at, value });
    }
  });
  joined.forEach((span) => (span.to = Math.min(span.to + (span === joined.at(-1) ? step : 0), range.to)));
  return joined;
}

/** A band for each series, with the text of its state where there is space for it. */
export function StateTimeline({ panel, frames, config, width, height, range }) {
  const bands = frames.flatMap((frame) => {
    const time = frame.fields.find((field) => field.type === FieldType.time);
    return frame.fields
      .filter((field) => time && field !== time && field.values.length > 0)
      .map((field) => ({ name: getFieldDisplayName(field, frame, frames), field, spans: spans(time, field, range) }));
  });
  if (bands.length === 0) {
    return <Message text={config.defaults.noValue ?? 'No data'} width={width} height={height} />;
  }
  const shown = bands.slice(0, panel.options.perPage ?? 20);
  const widest = Math.max(...shown.map((band) => measureText(band.name, 12).width));
  const left = Math.min(widest + 12, width / 2);
  const plot = width - left - 8;
  const rowHeight = (height - AXIS_HEIGHT) / shown.length;
  const place = (time) => ((Math.max(time, range.from) - range.from) / (range.to - range.from)) * plot;
  return (
    <div className="state-timeline" data-bands={bands.length} data-shown={shown.length} style={{ width, height }}>
      {shown.map((band) => (
        <div key={band.name} style={{ position: 'relative', height: rowHeight }}>
          <span className="band-name" style={{ width: left - 8, lineHeight: `${rowHeight}px` }}>
            {band.name}
          </span>
          {band.spans.map((span) => {
            const display = band.field.display(span.value);
            return (
              <span
                key={span.from}
                className="band"
                style={{
                  left: left + place(span.from),
                  width: Math.max(place(span.to) - place(span.from), 1),
                  height: rowHeight * (panel.options.rowHeight ?? 0.9),
                  background: display.color,
                  opacity: (config.defaults.custom.fillOpacity ?? 70) / 100,
                  lineHeight: `${rowHeight * (panel.options.rowHeight ?? 0.9)}px`,
                }}
              >
                {formattedValueToString(display)}
              </span>
            );
          })}
        </div>
      ))}
      <TimeAxis range={range} left={left} width={plot} />
    </div>
  );
}

/** Counts by bucket and time: the more, the darker. */
export function Heatmap({ panel, frames, config, width, height, range }) {
  const canvas = useRef(null);
  const frame = frames.find((each) => each.length > 0);
  const time = frame?.fields.find((field) => field.type === FieldType.time);
  const buckets = frame?.fields.filter((field) => field.type === FieldType.number) ?? [];
  const left = 64;
  const plot = { width: width - left - 8, height: height - AXIS_HEIGHT };
  useEffect(() => {
    if (!canvas.current || !time) {
      return;
    }
    const pen = canvas.current.getContext('2d');
    const top = Math.max(...buckets.flatMap((field) => field.values.filter(Number.isFinite)), 0);
    const step = time.config.interval;
    const rowHeight = plot.height / buckets.length;
    buckets.forEach((field, row) => {
      field.values.forEach((count, index) => {
        if (!(count > (panel.options.filterValues?.le ?? 0))) {
          return;
        }
        const share = count / top;
        pen.fillStyle = `hsl(${35 - 20 * share}, 90%, ${88 - 50 * share}%)`;
        const x = ((time.values[index] - range.from) / (range.to - range.from)) * plot.width;
        pen.fillRect(x, plot.height - (row + 1) * rowHeight, Math.max((step / (range.to - range.from)) * plot.width - 1, 1), rowHeight - 1);
      });
    });
  });
  if (!time || buckets.length === 0) {
    return <Message text={config.defaults.noValue ?? 'No data'} width={width} height={height} />;
  }
  const unit = getValueFormat(panel.options.yAxis?.unit ?? 'short');
  return (
    <div style={{ width, height, position: 'relative' }}>
      {buckets.map((field, row) => (
        <span key={field.name} className="bucket" style={{ width: left - 8, bottom: AXIS_HEIGHT + ((row + 0.5) * plot.height) / buckets.length - 8 }}>
          {Number.isFinite(parseFloat(field.name)) ? formattedValueToString(unit(parseFloat(field.name))) : field.name}
        </span>
      ))}
      <canvas ref={canvas} width={plot.width} height={plot.height} style={{ marginLeft: left }} />
      <TimeAxis range={range} left={left} width={plot.width} />
    </div>
  );
}

/** A text in Markdown or HTML. */
export function Text({ panel, width, height, replace }) {
  const text = replace(panel.options.content ?? '');
  return <div className="text" style={{ width, height }} dangerouslySetInnerHTML={{ __html: panel.options.mode === 'html' ? text : renderMarkdown(text) }} />;
}

// alertQuery finds what an alert list shows. Grafana asks its own server for alerts.
export const alertQuery = { refId: 'A', instant: true, format: 'table', expr: 'sort(ALERTS_FOR_STATE * ignoring (alertstate) group_right () ALERTS{alertstate="firing"})' };

/** The alerts that fire, the oldest first. */
export function AlertList({ frames, config, width, height }) {
  const frame = frames.find((each) => each.length > 0);
  if (!frame) {
    return <Message text={config.defaults.noValue ?? 'No alerts matching filters'} width={width} height={height} />;
  }
  const column = (name) => frame.fields.find((field) => field.name === name)?.values ?? [];
  const names = column('alertname');
  return (
    <div className="text" style={{ width, height, overflow: 'auto' }}>
      {names.map((name, row) => (
        <div key={row} className="alert">
          {name} <span>{column('severity')[row]}</span>
        </div>
      ))}
    </div>
  );
}

/** Draws annotations into a time series as Grafana does: dashed lines, with a shade between the ends of a region. */
export function TimeSeriesMarks({ builder, marks, theme }) {
  const current = useRef(marks);
  current.current = marks;
  useLayoutEffect(() => {
    builder.addHook('draw', (plot) => {
      const { ctx: pen, bbox } = plot;
      pen.save();
      pen.beginPath();
      pen.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      pen.clip();
      pen.lineWidth = 2;
      pen.setLineDash([5, 5]);
      for (const mark of current.current) {
        const color = theme.visualization.getColorByName(mark.color);
        const [from, to] = [mark.from, mark.to].map((time) => Math.round(plot.valToPos(time, 'x', true)));
        pen.strokeStyle = color;
        pen.fillStyle = color;
        for (const x of new Set([from, to])) {
          pen.beginPath();
          pen.moveTo(x, bbox.top);
          pen.lineTo(x, bbox.top + bbox.height);
          pen.stroke();
        }
        pen.globalAlpha = 0.1;
        pen.fillRect(from, bbox.top, to - from, bbox.height);
        pen.globalAlpha = 1;
      }
      pen.restore();
    });
  }, [builder]);
  return null;
}
