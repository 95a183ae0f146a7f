"""Services of Cloud Run behind Identity-Aware Proxy, which start when somebody who may asks them."""
