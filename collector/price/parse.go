package price

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dra-exporter/dra-exporter/collector/yamlfile"
)

// The keys of a price list. Any other is an error: a misspelt one would make
// its rule match more devices.
const (
	keyCurrency = "currency"
	keyPrices   = "prices"
	keyClass    = "deviceclass"
	keyDriver   = "driver"
	keyModel    = "model"
	keyProfile  = "profile"
	keyPerHour  = "perHour"
)

const (
	maxRules    = 1000
	maxCurrency = 16   // bytes of the currency's name
	maxPerHour  = 1e12 // an hour; totals of such prices are still counted exactly enough
)

// Load reads the price list of a file. Errors name the file, and the line and
// the key where there are any.
func Load(path string) (*Prices, error) {
	text, err := yamlfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read the price list: %w", err)
	}
	return Parse(path, text)
}

// Parse decodes a price list in YAML: a currency, and prices in their order.
// Nothing is ignored: unknown keys, duplicate keys, values of another type, and
// rules that an earlier one makes unreachable are errors. Errors contain the
// name.
func Parse(name string, text []byte) (*Prices, error) {
	prices, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("decode the price list: %w", yamlfile.In(name, err))
	}
	return prices, nil
}

func parse(text []byte) (*Prices, error) {
	root, err := yamlfile.Document(text)
	if err != nil {
		return nil, err
	}
	file, err := yamlfile.MappingOf(root, "the price list", keyCurrency, keyPrices)
	if err != nil {
		return nil, err
	}
	currency, err := file.Need(keyCurrency)
	if err != nil {
		return nil, err
	}
	prices := &Prices{}
	if prices.Currency, err = yamlfile.Text(keyCurrency, currency); err != nil {
		return nil, err
	}
	if len(prices.Currency) > maxCurrency {
		return nil, yamlfile.Errorf(currency, "%s is longer than %d bytes", keyCurrency, maxCurrency)
	}
	if _, err := file.Need(keyPrices); err != nil {
		return nil, err
	}
	entries, err := file.List(keyPrices, maxRules)
	if err != nil {
		return nil, err
	}
	prices.Rules, err = parseRules(entries)
	return prices, err
}

func parseRules(entries []*yaml.Node) ([]Rule, error) {
	rules := make([]Rule, 0, len(entries))
	for _, entry := range entries {
		rule, err := parseRule(entry)
		if err != nil {
			return nil, err
		}
		for i, earlier := range rules {
			if earlier.covers(rule) {
				return nil, yamlfile.Errorf(entry, "this price is never used: line %d comes first and matches everything that it matches", entries[i].Line)
			}
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func parseRule(entry *yaml.Node) (Rule, error) {
	price, err := yamlfile.MappingOf(entry, "a price", keyClass, keyDriver, keyModel, keyProfile, keyPerHour)
	if err != nil {
		return Rule{}, err
	}
	var rule Rule
	for _, field := range []struct {
		key  string
		into *string
	}{{keyClass, &rule.DeviceClass}, {keyDriver, &rule.Driver}, {keyModel, &rule.Model}, {keyProfile, &rule.Profile}} {
		if *field.into, err = price.Text(field.key); err != nil {
			return Rule{}, err
		}
	}
	if strings.Contains(rule.DeviceClass, "*") {
		return Rule{}, yamlfile.Errorf(price.Node(keyClass), "%s: * is a wildcard only in %s and %s", keyClass, keyModel, keyProfile)
	}
	if strings.Contains(rule.Driver, "*") {
		return Rule{}, yamlfile.Errorf(price.Node(keyDriver), "%s: * is a wildcard only in %s and %s", keyDriver, keyModel, keyProfile)
	}
	at, err := price.Need(keyPerHour)
	if err != nil {
		return Rule{}, err
	}
	rule.PerHour, err = yamlfile.Number(keyPerHour, at)
	switch {
	case err != nil:
		return Rule{}, err
	case rule.PerHour < 0:
		return Rule{}, yamlfile.Errorf(at, "%s: %s is negative", keyPerHour, at.Value)
	case rule.PerHour > maxPerHour:
		return Rule{}, yamlfile.Errorf(at, "%s: %s is more than %g", keyPerHour, at.Value, maxPerHour)
	}
	return rule, nil
}
