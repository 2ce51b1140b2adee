package compare

import _ "github.com/prometheus/common/expfmt"
