"""Face keypoints: data, detection in files and videos, evaluation."""
