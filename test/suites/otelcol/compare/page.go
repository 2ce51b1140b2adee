package compare

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Page is one scrape, in the only format with the start times of counters.
type Page struct {
	Families map[string]*dto.MetricFamily
	// Asked and Answered are the times of the request and of the answer, the
	// zero time if the page was not scraped.
	Asked, Answered time.Time
}

// protobuf is the requested format of a page.
const protobuf = `application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited`

// Scrape reads a page over HTTP.
func Scrape(ctx context.Context, url string) (*Page, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", protobuf)
	asked := time.Now()
	response, err := (&http.Client{}).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, response.Status)
	}
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/vnd.google.protobuf") {
		return nil, fmt.Errorf("%s answers with %s, which has no start times", url, kind)
	}
	page, err := ReadPage(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", url, err)
	}
	page.Asked, page.Answered = asked, time.Now()
	return page, nil
}

// ReadPage decodes a page of delimited protobuf messages.
func ReadPage(body io.Reader) (*Page, error) {
	page := &Page{Families: map[string]*dto.MetricFamily{}}
	decoder := expfmt.NewDecoder(bufio.NewReader(body), expfmt.NewFormat(expfmt.TypeProtoDelim))
	for {
		var family dto.MetricFamily
		switch err := decoder.Decode(&family); {
		case errors.Is(err, io.EOF):
			return page, nil
		case err != nil:
			return nil, err
		case page.Families[family.GetName()] != nil:
			return nil, fmt.Errorf("%s is there twice", family.GetName())
		}
		page.Families[family.GetName()] = &family
	}
}
