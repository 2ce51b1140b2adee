// Makes scripts and a style sheet of page/, in the folder bundle beside it.
import { createRequire } from 'node:module';
import path from 'node:path';
import { build } from 'esbuild';

const require = createRequire(import.meta.url);

// The package's own exports do not have this file alone, and all of it brings an editor.
const results = path.join(path.dirname(require.resolve('@grafana/prometheus/package.json')), 'dist/esm/result_transformer.mjs');

// The default of this package is in a property of its module, where an import from
// an .mjs file does not look for it.
const scrollbars = {
  name: 'scrollbars',
  setup(bundler) {
    const library = require.resolve('react-custom-scrollbars-2');
    bundler.onResolve({ filter: /^react-custom-scrollbars-2$/ }, () => ({ path: 'scrollbars', namespace: 'scrollbars' }));
    bundler.onLoad({ filter: /.*/, namespace: 'scrollbars' }, () => ({
      contents: `import { Scrollbars } from ${JSON.stringify(library)}; export { Scrollbars, Scrollbars as default };`,
      resolveDir: import.meta.dirname,
      loader: 'js',
    }));
  },
};

await build({
  entryPoints: [path.join(import.meta.dirname, 'page/index.jsx')],
  outdir: path.join(import.meta.dirname, 'bundle'),
  bundle: true,
  splitting: true,
  format: 'esm',
  jsx: 'automatic',
  target: 'chrome120',
  define: { 'process.env.NODE_ENV': '"production"', global: 'window' },
  loader: { '.svg': 'dataurl', '.woff': 'file', '.woff2': 'file', '.ttf': 'file', '.png': 'file' },
  alias: { 'grafana-prometheus-results': results },
  plugins: [scrollbars],
  logLevel: 'error',
});
