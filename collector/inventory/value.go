package inventory

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// validUTF8 makes text from the API server valid UTF-8: protobuf bodies are not
// checked for it, and label values must be.
func validUTF8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// Values of attributes and capacities are kept as texts in a textTable. The
// first byte is the kind, so that texts are equal exactly if the values are.
const (
	valueInt      = 'i'
	valueBool     = 'b'
	valueString   = 's'
	valueVersion  = 'v'
	valueInts     = 'I'
	valueBools    = 'B'
	valueStrings  = 'S'
	valueVersions = 'V'
	valueQuantity = 'q'
)

// attributeText returns the text of an attribute's value, and false for an
// attribute of no known kind. If several values are set, the one that CEL sees
// counts.
func attributeText(attribute *resourcev1.DeviceAttribute) (string, bool) {
	switch {
	case attribute.IntValues != nil:
		return listText(valueInts, attribute.IntValues, func(v int64) string { return strconv.FormatInt(v, 10) }), true
	case attribute.BoolValues != nil:
		return listText(valueBools, attribute.BoolValues, strconv.FormatBool), true
	case attribute.StringValues != nil:
		return listText(valueStrings, attribute.StringValues, asIs), true
	case attribute.VersionValues != nil:
		return listText(valueVersions, attribute.VersionValues, asIs), true
	case attribute.IntValue != nil:
		return string(valueInt) + strconv.FormatInt(*attribute.IntValue, 10), true
	case attribute.BoolValue != nil:
		return string(valueBool) + strconv.FormatBool(*attribute.BoolValue), true
	case attribute.StringValue != nil:
		return string(valueString) + *attribute.StringValue, true
	case attribute.VersionValue != nil:
		return string(valueVersion) + *attribute.VersionValue, true
	}
	return "", false
}

func asIs(text string) string { return text }

// listText writes each entry behind its length.
func listText[T any](kind byte, values []T, format func(T) string) string {
	text := []byte{kind}
	for _, value := range values {
		entry := format(value)
		text = binary.AppendUvarint(text, uint64(len(entry)))
		text = append(text, entry...)
	}
	return string(text)
}

// parseAttribute returns the attribute that attributeText made a text of.
func parseAttribute(text string) resourcev1.DeviceAttribute {
	kind, rest := text[0], text[1:]
	var attribute resourcev1.DeviceAttribute
	switch kind {
	case valueInt:
		value := parseInt(rest)
		attribute.IntValue = &value
	case valueBool:
		value := rest == "true"
		attribute.BoolValue = &value
	case valueString:
		attribute.StringValue = &rest
	case valueVersion:
		attribute.VersionValue = &rest
	case valueInts:
		attribute.IntValues = parseList(rest, parseInt)
	case valueBools:
		attribute.BoolValues = parseList(rest, func(entry string) bool { return entry == "true" })
	case valueStrings:
		attribute.StringValues = parseList(rest, asIs)
	case valueVersions:
		attribute.VersionValues = parseList(rest, asIs)
	}
	return attribute
}

// parseInt parses what attributeText wrote.
func parseInt(text string) int64 {
	value, _ := strconv.ParseInt(text, 10, 64)
	return value
}

func parseList[T any](text string, parse func(string) T) []T {
	values := []T{}
	for text != "" {
		length, width := binary.Uvarint([]byte(text[:min(len(text), binary.MaxVarintLen64)]))
		text = text[width:]
		values = append(values, parse(text[:length]))
		text = text[length:]
	}
	return values
}

func quantityText(quantity resource.Quantity) string {
	return string(valueQuantity) + quantity.String()
}

func parseQuantity(text string) (resource.Quantity, error) {
	quantity, err := resource.ParseQuantity(text[1:])
	if err != nil {
		return quantity, fmt.Errorf("parse quantity: %w", err)
	}
	return quantity, nil
}

// Names of attributes and capacities are kept fully qualified, since that is how
// selectors see them. The driver is the domain of names without one.
const (
	nameAttribute = "a:"
	nameCapacity  = "c:"
)

// qualified returns the full name of an attribute or capacity of the driver.
func qualified(driver string, name resourcev1.QualifiedName) string {
	if strings.IndexByte(string(name), '/') >= 0 {
		return string(name)
	}
	return driver + "/" + string(name)
}
