// Grafana's parts ask for icons and fonts below this path; it must be set before they are loaded.
window.__grafana_public_path__ = '/public/';
