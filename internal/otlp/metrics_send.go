package otlp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// metricSender brings a request of metrics to the collector, once. Its error
// is what gRPC or HTTP say, or a PartialSuccess.
type metricSender interface {
	send(ctx context.Context, request *collectorpb.ExportMetricsServiceRequest) error
	close() error
}

// PartialSuccess is the answer of a collector that has taken a request but for
// some points, or has a word of warning. It is named like the types of the
// SDK's exporters for the same, by which partial knows them all.
type PartialSuccess struct {
	ErrorMessage  string
	RejectedItems int64
}

// Error has the collector's words.
func (p PartialSuccess) Error() string {
	return fmt.Sprintf("the collector rejects %d data points: %s", p.RejectedItems, oneLine(p.ErrorMessage))
}

func partialSuccess(response *collectorpb.ExportMetricsServiceResponse) error {
	said := response.GetPartialSuccess()
	if said.GetRejectedDataPoints() == 0 && said.GetErrorMessage() == "" {
		return nil
	}
	return PartialSuccess{ErrorMessage: said.GetErrorMessage(), RejectedItems: said.GetRejectedDataPoints()}
}

// grpcSender sends by gRPC. The connection is made when it is needed.
type grpcSender struct {
	connection *grpc.ClientConn
	service    collectorpb.MetricsServiceClient
	headers    metadata.MD
}

func newGRPCSender(target string, headers map[string]string, options []grpc.DialOption) (*grpcSender, error) {
	connection, err := grpc.NewClient(target, options...)
	if err != nil {
		return nil, err
	}
	return &grpcSender{
		connection: connection, service: collectorpb.NewMetricsServiceClient(connection), headers: metadata.New(headers),
	}, nil
}

func (s *grpcSender) send(ctx context.Context, request *collectorpb.ExportMetricsServiceRequest) error {
	response, err := s.service.Export(metadata.NewOutgoingContext(ctx, s.headers), request)
	if err != nil {
		return err
	}
	return partialSuccess(response)
}

func (s *grpcSender) close() error { return s.connection.Close() }

// httpSender sends by HTTP. The client makes an error of each answer that is
// no success.
type httpSender struct {
	client  *http.Client
	url     string
	headers map[string]string
	gzip    bool
}

func (s *httpSender) send(ctx context.Context, message *collectorpb.ExportMetricsServiceRequest) error {
	body, err := proto.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode metrics: %w", err)
	}
	if s.gzip {
		if body, err = compressed(body); err != nil {
			return fmt.Errorf("compress metrics: %w", err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range s.headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	if s.gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return answered(response)
}

// answered reads what a collector says that has taken the request.
func answered(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, answerBytes+1))
	if len(body) > answerBytes {
		return fmt.Errorf("read the collector's answer: it has more than %d bytes", answerBytes)
	}
	if err != nil || !strings.HasPrefix(response.Header.Get("Content-Type"), "application/x-protobuf") {
		return err
	}
	var message collectorpb.ExportMetricsServiceResponse
	if err := proto.Unmarshal(body, &message); err != nil {
		return fmt.Errorf("decode the collector's answer: %w", err)
	}
	return partialSuccess(&message)
}

// compressed trades size for time: labels repeat so much that the quickest
// level makes a tenth of them.
func compressed(body []byte) ([]byte, error) {
	var smaller bytes.Buffer
	writer, err := gzip.NewWriterLevel(&smaller, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := writer.Write(body); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return smaller.Bytes(), nil
}

func (s *httpSender) close() error {
	s.client.CloseIdleConnections()
	return nil
}
