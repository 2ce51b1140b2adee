package price

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The keys of a price list. Any other is an error: a misspelt one would make
// its rule match more devices.
const (
	keyCurrency = "currency"
	keyPrices   = "prices"
	keyClass    = "deviceclass"
	keyModel    = "model"
	keyProfile  = "profile"
	keyPerHour  = "perHour"
)

const (
	maxFile     = 1 << 20 // bytes
	maxRules    = 1000
	maxCurrency = 16 // bytes of the currency's name
)

// Load reads the price list of a file. Errors name the file, and the line and
// the key where there are any.
func Load(path string) (*Prices, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the price list: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
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
	var misplaced *lineError
	switch {
	case errors.As(err, &misplaced):
		return nil, fmt.Errorf("decode the price list: %s:%d: %s", name, misplaced.line, misplaced.what)
	case err != nil:
		return nil, fmt.Errorf("decode the price list: %s: %w", name, err)
	default:
		return prices, nil
	}
}

func parse(text []byte) (*Prices, error) {
	root, err := decodeDocument(text)
	if err != nil {
		return nil, err
	}
	keys, err := keysOf(root, "the price list", keyCurrency, keyPrices)
	if err != nil {
		return nil, err
	}
	prices := &Prices{}
	if prices.Currency, err = keys.text(keyCurrency); err != nil {
		return nil, err
	}
	switch at := keys.values[keyCurrency]; {
	case at == nil:
		return nil, errorAt(root, "%s is missing", keyCurrency)
	case len(prices.Currency) > maxCurrency:
		return nil, errorAt(at, "%s is longer than %d bytes", keyCurrency, maxCurrency)
	}
	prices.Rules, err = parseRules(root, keys.values[keyPrices])
	return prices, err
}

// decodeDocument returns the root of the only YAML document in the text.
func decodeDocument(text []byte) (*yaml.Node, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	var document, another yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF), err == nil && len(document.Content) == 0:
		return nil, errors.New("it is empty")
	case err != nil:
		return nil, err
	}
	switch err := decoder.Decode(&another); {
	case err == nil:
		return nil, errorAt(&another, "a second document begins here; only one is read")
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return document.Content[0], nil
}

func parseRules(root, list *yaml.Node) ([]Rule, error) {
	switch {
	case list == nil:
		return nil, errorAt(root, "%s is missing", keyPrices)
	case list.Kind != yaml.SequenceNode:
		return nil, errorAt(list, "%s is %s, want a list", keyPrices, kindOf(list))
	case len(list.Content) == 0:
		return nil, errorAt(list, "%s has no entries", keyPrices)
	case len(list.Content) > maxRules:
		return nil, errorAt(list, "%s has more than %d entries", keyPrices, maxRules)
	}
	rules := make([]Rule, 0, len(list.Content))
	for _, entry := range list.Content {
		rule, err := parseRule(entry)
		if err != nil {
			return nil, err
		}
		for i, earlier := range rules {
			if earlier.covers(rule) {
				return nil, errorAt(entry, "this price is never used: line %d comes first and matches everything that it matches", list.Content[i].Line)
			}
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func parseRule(entry *yaml.Node) (Rule, error) {
	keys, err := keysOf(entry, "a price", keyClass, keyModel, keyProfile, keyPerHour)
	if err != nil {
		return Rule{}, err
	}
	var rule Rule
	for _, field := range []struct {
		key  string
		into *string
	}{{keyClass, &rule.DeviceClass}, {keyModel, &rule.Model}, {keyProfile, &rule.Profile}} {
		if *field.into, err = keys.text(field.key); err != nil {
			return Rule{}, err
		}
	}
	if at := keys.values[keyClass]; strings.Contains(rule.DeviceClass, "*") {
		return Rule{}, errorAt(at, "%s: * is a wildcard only in %s and %s", keyClass, keyModel, keyProfile)
	}
	at, given := keys.values[keyPerHour]
	if !given {
		return Rule{}, errorAt(entry, "%s is missing", keyPerHour)
	}
	rule.PerHour, err = number(keyPerHour, at)
	return rule, err
}
